/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How windows are bound and taken back: kmod/rmr.c, queue.c, and of ep.c what becomes of
 * binds that wait. Written as endpoint.pml is; dapx_rmr is the tracepoint here.
 */

/* enum dapx_queue_mode */
mtype = { RUN, FLUSH, STOP };
/* What becomes of a request, or of a bind. */
mtype = { NEW, PUBLISHED, DEVICE, WAITS, COMPLETED, FAILED, DISCARDED, REFUSED };

#define BINDS 2
#define REQUESTS 2
#define NONE 2		/* no bind, no window */
#define NOWHERE 9

/* Windows: the one that bind b makes has number b. */
bool key[BINDS];	/* the device takes it */
bool region[BINDS];	/* struct dapx_window is there, with its ib_mr */
bool over[BINDS];	/* a call that ended it has returned, or its event is there */
byte packet = NONE;	/* the window that a packet of the peer is being copied to */

/* The MR that the windows are of, and the PD of all. */
bool mr_there = true;
byte mr_users;
bool pd_there = true;
byte pd_users = 3;	/* MR, RMR and endpoint */

/* The RMR. */
bool rmr_published = true;
byte rmr_refs = 1;
bool rmr_mutex;
bool rmr_dead;
byte rmr_window = NONE;

/* Binds. */
mtype bind[BINDS] = NEW;
bool bind_there[BINDS];	/* struct dapx_bind is */
byte bind_window[BINDS] = NONE;
bool bind_listed[BINDS];	/* in rmr->binds */
bool unbinds[BINDS];	/* without a window */

/* The endpoint. */
bool ep_published = true;
bool ep_mutex;
bool ep_dead, ep_broken;
bool todo_bind, todo_break;
bool work_queued, work_runs;

/* Its request queue. */
mtype mode = RUN;
byte head, tail;
byte outstanding;
mtype req[REQUESTS] = NEW;
byte first = NONE, second = NONE;	/* q->barriers: binds ... */
byte barrier_index[BINDS] = NOWHERE;	/* ... and where they stand */
bool passing;
bool busy;		/* a completion runs the queue */
byte bound = NONE;	/* what the events say */
bool stalls;		/* the peer: what the device has ends by a flush only */
byte done;		/* threads of the process that returned */

#define rmr_touch assert(rmr_refs > 0)
#define bind_touch(b) assert(bind_there[b])

inline lock(m) { atomic { !m -> m = true } }
inline unlock(m) { m = false }

/* ------------------------------------------------------------------- windows */

/* Takes the use of the MR. */
inline dapx_window_create(b)
{
	assert(pd_there && mr_there && mr_users > 0);
#ifndef WITHOUT_register
	atomic { region[b] = true; key[b] = true; bind_window[b] = b }
#endif
}

/* ib_dereg_mr(): the key is gone, then the packet that is being copied is waited for. */
inline ib_dereg_mr(w)
{
	key[w] = false;
	packet != w
}

inline dapx_window_revoke(w)
{
	if
	:: w == NONE
	:: else ->
#ifndef WITHOUT_revoke
		atomic { rmr_touch; assert(region[w] && mr_there) }
#ifndef WITHOUT_dapx_window_revoke__ib_dereg_mr
		ib_dereg_mr(w);
#endif
		atomic {
			/* dapx_pd_check_soon() */
			assert(pd_there && mr_there && mr_users > 0 && region[w]);
#ifndef WITHOUT_dapx_window_revoke__dapx_object_unuse
			mr_users--;
#endif
			region[w] = false
		}
#endif
		skip
	fi
}

/* ------------------------------------------------------------- request queue */

/* Below q->lock, as all that is atomic here. */
#define at(index) (head == index && !passing && mode != STOP && AT_OUTSTANDING)
#define at_barrier (first != NONE && at(barrier_index[first]))
#ifndef WITHOUT_dapx_queue_at__outstanding
#define AT_OUTSTANDING (outstanding == 0)
#else
#define AT_OUTSTANDING true
#endif

#ifndef WITHOUT_dapx_queue_tail__barrier
#define AT_TAIL (head == tail || (first != NONE && head == barrier_index[first]))
#else
#define AT_TAIL (head == tail)
#endif

inline dapx_ep_queue(todo)
{
	if
	:: !ep_dead -> todo = true; work_queued = true
	:: else
	fi
}

inline dapx_queue_run_locked()
{
	do
	:: mode == STOP || (mode == FLUSH && outstanding > 0) || AT_TAIL -> break
	:: else ->
		assert(req[head] == PUBLISHED);
		/* What is behind a bind waits for it. */
		assert(bind[0] != WAITS || head < barrier_index[0]);
		assert(bind[1] != WAITS || head < barrier_index[1]);
		if
		:: mode == RUN -> req[head] = DEVICE; outstanding++
		:: else -> req[head] = FAILED
		fi;
		head++
	od;
	if
	:: at_barrier -> dapx_ep_queue(todo_bind)
	:: else
	fi;
	busy = (mode == RUN && first != NONE)
}

inline dapx_queue_run()
{
	atomic { dapx_queue_run_locked() }
}

inline dapx_ep_update_modes()
{
	atomic {
		mode = (ep_dead -> STOP : (ep_broken -> FLUSH : RUN));
		dapx_queue_run_locked()
	}
}

inline dapx_queue_add_barrier(b)
{
	atomic {
		barrier_index[b] = tail;
		if
		:: first == NONE -> first = b
		:: else -> assert(second == NONE); second = b
		fi
	}
}

inline list_del_first()
{
	first = second;
	second = NONE
}

inline dapx_queue_pass_status(ok)
{
	ok = (mode == RUN);
#ifndef WITHOUT_dapx_queue_pass_status__mode
	ok = (ok && !ep_broken && !ep_dead)
#endif
}

inline dapx_queue_claim_barrier(b, ok)
{
	atomic {
		if
		:: at_barrier ->
			b = first;
#ifndef WITHOUT_dapx_queue_claim_barrier__passing
			passing = true;
#endif
			dapx_queue_pass_status(ok)
		:: else -> b = NONE
		fi
	}
}

inline dapx_queue_pass_barrier(b, ok)
{
	atomic {
		bind_touch(b);
		assert(bind[b] == WAITS);
#ifndef WITHOUT_dapx_queue_pass_barrier__list_del
		assert(first == b);
		list_del_first();
#endif
#ifndef WITHOUT_dapx_queue_pass_barrier__passing
		passing = false;
#endif
		/* Its event: all before it is done, and well; what it says is so. */
		assert(barrier_index[b] == 0 || req[0] == COMPLETED || (req[0] == FAILED && !ok));
		assert(barrier_index[b] < 2 || req[1] == COMPLETED || (req[1] == FAILED && !ok));
		if
		:: ok -> say_bound(b)
		:: else -> over[b] = true
		fi;
		bind[b] = (ep_dead -> DISCARDED : (ok -> COMPLETED : FAILED));
		bind_there[b] = false
	}
#ifndef WITHOUT_dapx_queue_pass_barrier__dapx_queue_run
	dapx_queue_run()
#endif
}

/* Neither a bind nor a request is before what comes now; and that ends well. */
inline dapx_queue_is_clear(b, clear)
{
	atomic {
		barrier_index[b] = tail;
		dapx_queue_pass_status(clear);
#ifndef WITHOUT_dapx_queue_is_clear__list_empty
		clear = (clear && first == NONE);
#endif
#ifndef WITHOUT_dapx_queue_is_clear__dapx_queue_at
		clear = (clear && at(tail))
#endif
	}
}

inline dapx_queue_drop_barrier(b)
{
	atomic {
		b = first;
		if
		:: b != NONE -> list_del_first()
		:: else
		fi
	}
}

/* --------------------------------------------------------------------- binds */

inline dapx_rmr_set_window(window, w)
{
#ifndef WITHOUT_bind
	/* swap() */
	w = rmr_window;
	rmr_window = window;
	window = w;
#endif
#ifndef WITHOUT_dapx_rmr_set_window__dapx_window_revoke
	dapx_window_revoke(window);
#endif
	window = NONE
}

/* That bind b is done: it is so, and what was there before is gone. */
inline say_bound(b)
{
	assert(rmr_dead || rmr_window == (unbinds[b] -> NONE : b));
	assert(rmr_dead || unbinds[b] || key[b]);
	if
	:: bound != NONE -> over[bound] = true
	:: else
	fi;
	bound = (unbinds[b] -> NONE : b)
}

inline dapx_bind_complete(b, ok, w)
{
#ifndef WITHOUT_dapx_bind_complete__mutex_lock_nested
	lock(rmr_mutex);
#endif
	rmr_touch;
	bind_touch(b);
	if
	:: !bind_listed[b]
	:: else ->
		bind_listed[b] = false;
		if
		:: ok -> dapx_rmr_set_window(bind_window[b], w)
		:: else ->
			dapx_window_revoke(bind_window[b]);
			bind_window[b] = NONE
		fi
	fi;
	w = NONE;
	unlock(rmr_mutex);
	atomic { rmr_touch; rmr_refs-- }
}

inline dapx_queue_pass_barriers(b, ok, w)
{
	do
	:: dapx_queue_claim_barrier(b, ok);
		if
		:: b == NONE -> break
		:: else ->
			dapx_bind_complete(b, ok, w);
#ifndef WITHOUT_dapx_queue_pass_barriers__dapx_queue_pass_barrier
			dapx_queue_pass_barrier(b, ok)
#endif
		fi
	od;
	ok = false
}

inline dapx_queue_drop_barriers(b, w)
{
	do
	:: dapx_queue_drop_barrier(b);
		if
		:: b == NONE -> break
		:: else ->
			dapx_bind_complete(b, false, w);
			atomic {
				bind_touch(b);
				assert(bind[b] == WAITS);
				bind[b] = DISCARDED;
				bind_there[b] = false;
				over[b] = true
			}
		fi
	od
}

/* ------------------------------------------------------------------ commands */

inline dapx_rmr_bind_at_once(b, ok, w)
{
#ifndef WITHOUT_dapx_rmr_bind_at_once__mutex_lock_nested
	lock(rmr_mutex);
#endif
	rmr_touch;
#ifndef WITHOUT_dapx_rmr_bind_at_once__dead
	ok = !rmr_dead;
#endif
	if
	:: ok ->
#ifndef WITHOUT_dapx_rmr_bind_at_once__dapx_rmr_set_window
		dapx_rmr_set_window(bind_window[b], w);
#endif
		atomic {
			assert(barrier_index[b] == 0 || req[0] == COMPLETED);
			assert(barrier_index[b] < 2 || req[1] == COMPLETED);
			say_bound(b);
			bind[b] = COMPLETED
		}
	:: else
	fi;
	w = NONE;
	unlock(rmr_mutex)
}

inline dapx_rmr_queue_bind(b, t, ok, w)
{
	atomic { bind_there[b] = true; barrier_index[b] = NOWHERE }
	lock(rmr_mutex);
	rmr_touch;
#ifndef WITHOUT_dapx_rmr_queue_bind__dead
	ok = !rmr_dead;
#endif
	if
	:: ok ->
#ifndef WITHOUT_dapx_rmr_queue_bind__kref_get
		atomic { rmr_touch; rmr_refs++ }
#endif
		atomic { bind[b] = WAITS; bind_listed[b] = true }
#ifndef WITHOUT_dapx_rmr_queue_bind__dapx_queue_add_barrier
		dapx_queue_add_barrier(b)
#endif
	:: else
	fi;
	unlock(rmr_mutex);
	if
	:: ok ->
		dapx_queue_pass_barriers(t, ok, w);
		ok = true;
		if
		:: first != NONE -> dapx_queue_run()
		:: else
		fi
	:: else -> bind_there[b] = false
	fi
}

/* Whether an event is asked for is left open: then it is queued in any case. */
inline dapx_rmr_post_bind(b, t, ok, w)
{
	assert(bind[b] == NEW);
	dapx_queue_is_clear(b, ok);
	if
	:: ok -> dapx_rmr_bind_at_once(b, ok, w)
	:: ok = true; dapx_rmr_queue_bind(b, t, ok, w)
	fi
}

/* That nothing is pinned for an endpoint that is gone already is left out. */
inline dapx_cmd_rmr_bind(b, t, ok, w)
{
	/* dapx_get_rmr(), dapx_use_mr() */
	atomic {
		ok = rmr_published && (mr_there || unbinds[b]);
		if
		:: ok ->
			rmr_touch;
			rmr_refs++;
#ifndef WITHOUT_dapx_cmd_rmr_bind__dapx_use_mr
			if
			:: !unbinds[b] -> mr_users++
			:: else
			fi
#endif
		:: else -> bind[b] = REFUSED
		fi
	}
	if
	:: ok ->
		if
		:: !unbinds[b] -> dapx_window_create(b)
		:: else
		fi;
		lock(ep_mutex);
		ok = !ep_dead;
		if
		:: ok -> dapx_rmr_post_bind(b, t, ok, w)
		:: else
		fi;
		unlock(ep_mutex);
		if
		:: ok
		:: else ->
#ifndef WITHOUT_dapx_cmd_rmr_bind__dapx_window_revoke
			dapx_window_revoke(bind_window[b]);
#endif
			atomic {
				bind_window[b] = NONE;
				bind[b] = REFUSED;
				over[b] = true
			}
		fi;
		atomic { rmr_touch; rmr_refs-- }
	:: else
	fi
}

inline dapx_rmr_destroy()
{
#ifndef WITHOUT_dapx_rmr_destroy__mutex_lock
	lock(rmr_mutex);
#endif
	rmr_touch;
#ifndef WITHOUT_dapx_rmr_destroy__dead
	rmr_dead = true;
#endif
#ifndef WITHOUT_dapx_rmr_destroy__dapx_window_revoke
	dapx_window_revoke(rmr_window);
#endif
	rmr_window = NONE;
#ifndef WITHOUT_dapx_rmr_destroy__binds
	b = 0;
	do
	:: b < BINDS ->
		if
		:: bind_listed[b] ->
			bind_touch(b);
			bind_listed[b] = false;
			dapx_window_revoke(bind_window[b]);
			bind_window[b] = NONE
		:: else
		fi;
		b++
	:: else -> break
	od;
#endif
	unlock(rmr_mutex);
	atomic { rmr_touch; assert(pd_there && pd_users > 0); pd_users--; b = 0 }
}

inline publish()
{
	atomic { req[tail] = PUBLISHED; tail++ }
	if
	:: !ep_dead -> dapx_queue_run()
	:: else
	fi
}

/* One thread: a request, a bind, a request behind it. */
proctype first_thread(byte before, behind)
{
	byte t = NONE, w = NONE;
	bool ok;

	if
	:: before > 0 -> publish()
	:: else
	fi;
	dapx_cmd_rmr_bind(0, t, ok, w);
	if
	:: behind > 0 -> publish()
	:: else
	fi;
	atomic { ok = false; done++ }
}

/* Another binds the window anew, or unbinds it. */
proctype second_thread()
{
	byte t = NONE, w = NONE;
	bool ok;

	dapx_cmd_rmr_bind(1, t, ok, w);
	atomic { ok = false; done++ }
}

proctype free_rmr()
{
	byte b;

	/* dapx_object_unpublish() */
	rmr_published = false;
	dapx_rmr_destroy();
	atomic {
		rmr_touch;
		rmr_refs--;
		/* It has returned: no key that anybody was told of opens anything. */
		for (b : 0 .. BINDS - 1) {
			over[b] = over[b] || bind[b] != NEW
		}
		b = 0;
		done++
	}
}

inline dapx_ep_stop()
{
	ep_dead = true;
#ifndef WITHOUT_dapx_ep_stop__cancel_work_sync
	atomic { !work_runs -> work_queued = false }
#endif
	dapx_ep_update_modes()
}

inline dapx_ep_teardown(b, w)
{
	dapx_ep_stop();
	/* dapx_ep_drain() */
	outstanding == 0;
#ifndef WITHOUT_dapx_ep_teardown__dapx_queue_drop_barriers
	dapx_queue_drop_barriers(b, w);
#endif
	skip
}

proctype free_ep()
{
	byte b = NONE, w = NONE;

#ifndef WITHOUT_dapx_ep_free__mutex_lock
	lock(ep_mutex);
#endif
	dapx_ep_teardown(b, w);
	unlock(ep_mutex);
	atomic {
		/* It has returned: none of its binds is left. */
		assert(bind[0] != WAITS && bind[1] != WAITS);
		assert(pd_there && pd_users > 0);
		pd_users--;
		done++
	}
}

/* The MR, and then the PD, as soon as they have no users. */
proctype free_mr_and_pd()
{
end:	atomic {
		mr_users == 0 && done > 0 ->
		assert(!key[0] && !key[1]);
		mr_there = false;
		pd_users--
	}
end2:	atomic { pd_users == 0 -> pd_there = false }
}

/* ------------------------------------------------------ the work, the device, the peer */

proctype work()
{
	byte b = NONE, w = NONE;
	bool ok, t_bind, t_break;

end:	do
	:: atomic {
		work_queued ->
		work_queued = false;
		work_runs = true;
		t_bind = todo_bind;
		t_break = todo_break;
		todo_bind = false;
		todo_break = false
	   }
	   if
	   :: !ep_dead ->
		if
		:: t_bind -> dapx_queue_pass_barriers(b, ok, w)
		:: else
		fi;
		if
		:: t_break -> dapx_ep_update_modes()
		:: else
		fi
	   :: else
	   fi;
	   atomic { t_bind = false; t_break = false; work_runs = false }
	od
}

/* Completes requests; one that fails breaks the connection, as dapx_ep_fail() notes. */
proctype device()
{
	byte i;

end:	do
	:: atomic {
		outstanding > 0 && (!stalls || ep_dead || ep_broken) ->
		i = (req[0] == DEVICE -> 0 : 1);
		assert(req[i] == DEVICE);
		if
		:: !ep_broken && !ep_dead -> req[i] = COMPLETED
		:: req[i] = FAILED;
		   ep_broken = true;
		   dapx_ep_queue(todo_break)
		fi
	   }
	   /* dapx_queue_retire(); doorbell.pml says when it has to run the ring. */
	   atomic {
		i = 0;
		outstanding--;
		if
		:: mode != FLUSH && !busy
		:: dapx_queue_run_locked()
		fi
	   }
	od
}

/* Writes by whatever key there is: found when a packet comes, used until it is copied. */
proctype peer()
{
end:	do
	:: atomic { key[0] -> packet = 0 }
	   atomic { assert(!over[0] && mr_there); packet = NONE }
	:: atomic { key[1] -> packet = 1 }
	   atomic { assert(!over[1] && mr_there); packet = NONE }
	od
}

init
{
	byte threads;

	atomic {
		if
		:: unbinds[1] = true
		:: unbinds[1] = false
		fi;
		run work();
		run device();
		run peer();
		run free_mr_and_pd();
		if
		:: threads = 3;
		   run first_thread(1, 0);
		   run free_rmr();
		   run free_ep();
		   if
		   :: stalls = true
		   :: true
		   fi
		:: threads = 2; run first_thread(1, 1); run second_thread()
		:: threads = 3; run first_thread(0, 0); run second_thread(); run free_rmr()
		:: threads = 3; run first_thread(1, 0); run second_thread(); run free_ep(); stalls = true
		fi
	}
	timeout;
	assert(done == threads);
	/* Each bind ended once: bind[] only ever leaves WAITS. */
	assert(ep_dead || stalls || (bind[0] != WAITS && bind[1] != WAITS));
	assert(bind[0] == WAITS || !bind_there[0]);
	assert(bind[1] == WAITS || !bind_there[1]);
	/* Requests behind a bind go on. */
	assert(ep_dead || stalls || (req[0] != PUBLISHED && req[1] != PUBLISHED));
	/* Nothing is left behind. */
	assert(mr_users == region[0] + region[1] && key[0] == region[0] && key[1] == region[1]);
	if
	:: rmr_dead -> assert(!region[0] && !region[1] && !mr_there)
	:: else
	fi;
	assert(!rmr_dead || !ep_dead || (rmr_refs == 0 && !pd_there))
}
