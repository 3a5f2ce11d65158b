/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When the module reads a ring of work: kmod/queue.c, and WorkRing::publish() of the library.
 * Whatever is published is taken and ends, with no more doorbells than BUSY asks for. Without a
 * barrier, a load may be done before the store that is written in front of it.
 */

/* enum dapx_queue_mode */
mtype = { RUN, FLUSH };

#define REQUESTS 2
#define DEVICE_DEPTH 2
#define BUSY_FROM 2
#define BUSY_UNTIL 1
#define NONE 9

mtype mode = RUN;
byte head, tail;
byte outstanding;
byte handlers;		/* completions that are being handled */
byte ended;		/* requests */
bool lock;		/* q->lock */
bool busy;
bool busy_deferred, lingered, timer;
bool faulty, faulted;
byte barrier = NONE;	/* where it stands */
bool work;		/* it is to be completed */

inline spin_lock_bh()
{
	atomic { !lock -> lock = true }
}

inline spin_unlock_bh()
{
	lock = false
}

/* Without the barrier, the count may be what it was before this thread wrote the mode. */
#ifndef WITHOUT_dapx_queue_can_flush__smp_mb
#define dapx_queue_can_flush (outstanding == 0)
#else
#define dapx_queue_can_flush (early && outstanding == 0)
#endif

#define at_barrier (head == barrier && !faulty && outstanding == 0)

inline dapx_queue_take()
{
	if
	:: mode == FLUSH -> ended++
	:: mode == RUN -> outstanding++
	:: mode == RUN && !faulted ->
		faulty = true;
		faulted = true;
		early = outstanding == 0;
		mode = FLUSH
	fi;
	head++
}

inline dapx_queue_will_rerun()
{
	if
	:: mode == FLUSH -> more = false
#ifndef WITHOUT_dapx_queue_will_rerun__barriers
	:: mode == RUN && barrier != NONE -> more = true
	:: mode == RUN && barrier == NONE ->
#else
	:: mode == RUN ->
#endif
		if
		:: outstanding >= (busy -> BUSY_UNTIL : BUSY_FROM) -> more = true
		:: else -> more = busy_deferred
		fi;
		/* The process has left events unread. */
		if
		:: !more && busy && !lingered -> more = true; busy_deferred = true; lingered = true; timer = true
		:: true
		fi
	fi
}

inline dapx_queue_run_locked()
{
	do
	:: true ->
		end_of = (barrier < tail -> barrier : tail);
		do
		:: mode == FLUSH && !(dapx_queue_can_flush) -> break
		:: else ->
			if
			:: mode == FLUSH && faulty -> faulty = false; ended++
			:: else
			fi;
			if
			:: head == end_of || (mode == RUN && outstanding >= DEVICE_DEPTH) -> break
			:: else -> dapx_queue_take()
			fi
		od;
		early = true;
		if
		:: at_barrier -> work = true
		:: else
		fi;
		dapx_queue_will_rerun();
		if
		:: more == busy -> break
		:: else
		fi;
#ifndef WITHOUT_dapx_queue_run_locked__smp_mb
		busy = more
#else
		busy = more;
		break
#endif
	od;
	more = false
}

inline dapx_queue_run()
{
	spin_lock_bh();
	dapx_queue_run_locked();
	spin_unlock_bh()
}

/* Posts, and binds a window between two requests. */
proctype process()
{
	byte end_of;
	bool more, early = true, silent;

	do
	:: tail < REQUESTS ->
		tail++;
		/* A full barrier. */
		silent = busy;
		if
		:: silent
		:: else -> dapx_queue_run()
		fi
	:: tail == REQUESTS - 1 && barrier == NONE ->
		spin_lock_bh();
		barrier = tail;
		spin_unlock_bh();
		dapx_queue_run()
	:: tail == REQUESTS -> break
	od;
	ended == REQUESTS && barrier == NONE
}

/* Of an endpoint there is one at a time; of an SRQ, one for each queue pair. */
proctype completion()
{
	byte end_of, left;
	bool more, early = true, rerun;

end:	do
	:: atomic { outstanding > handlers -> handlers++ }
	   /* dapx_queue_retire() */
	   atomic { outstanding--; handlers--; ended++; left = outstanding }
	   if
	   :: busy ->
#ifndef WITHOUT_dapx_queue_retire__busy
		if
		:: left < BUSY_UNTIL || tail != head -> rerun = true
		:: else
		fi
#else
		skip
#endif
	   :: else ->
#ifndef WITHOUT_dapx_queue_retire__mode
		rerun = (left == 0 && mode == FLUSH)
#else
		skip
#endif
	   fi;
	   if
	   :: rerun -> dapx_queue_run()
	   :: else
	   fi;
	   atomic { left = 0; rerun = false }
	od
}

/* The connection ends, or does not. */
proctype end_of_connection()
{
	byte end_of;
	bool more, early = true;

	if
	:: true
	:: spin_lock_bh();
	   early = outstanding == 0;
	   mode = FLUSH;
	   spin_unlock_bh();
	   dapx_queue_run()
	fi
}

/* dapx_queue_pass_barriers() */
proctype ep_work()
{
	byte end_of;
	bool more, early = true;

end:	do
	:: work ->
		work = false;
		spin_lock_bh();
		if
		:: at_barrier -> barrier = NONE
		:: else
		fi;
		spin_unlock_bh();
		dapx_queue_run()
	od
}

proctype linger()
{
	byte end_of;
	bool more, early = true, quiet;

end:	do
	:: timer ->
		/* dapx_queue_busy_deferred() */
		timer = false;
		spin_lock_bh();
		busy_deferred = false;
		quiet = (tail == head && outstanding == 0);
		if
		:: quiet -> busy = false
		:: else
		fi;
		spin_unlock_bh();
#ifndef WITHOUT_dapx_queue_busy_deferred__smp_mb
		quiet = false;
#endif
		if
		:: quiet
		:: else -> dapx_queue_run()
		fi;
		quiet = false
	od
}

init {
	atomic {
		run process();
		run completion();
		run completion();
		run end_of_connection();
		run ep_work();
		run linger()
	}
}
