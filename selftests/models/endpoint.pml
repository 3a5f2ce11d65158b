/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How an endpoint lives and ends: kmod/ep.c, ep_connect.c, queue.c, context.c.
 *
 * Inlines have the names of the functions that they are a model of. What stands in
 * "#ifndef WITHOUT_step" is a step of the one around it: a step of the tracepoint
 * dapx_teardown, or FUNCTION__word for a line of FUNCTION with that word. See
 * Documentation/testing.rst for what is assumed, and ./run for what is compared.
 */

/* enum dapx_ep_state */
mtype = { UNCONNECTED, RESERVED, PASSIVE_PENDING, ACTIVE_PENDING, TENTATIVE_PENDING,
	  COMPLETION_PENDING, CONNECTED, DISCONNECT_PENDING, DISCONNECTED };
/* enum dapx_queue_mode */
mtype = { HOLD, RUN, FLUSH, STOP };
/* A request: from the process to its one end. */
mtype = { NEW, PUBLISHED, DEVICE, HANDLER, BACKLOG, COMPLETED, DISCARDED };
/* What an ender does. */
mtype = { NOTHING, FREE, RESET, TEARDOWN };

#define REQUESTS 2	/* in a ring that has slots for one */
#define ENDERS 2

/* What is looked at, one after the other. */
mtype = { SET_UP, STALLS, ENDS, BREAKS, LINGERS, WAITS };
mtype scene;
byte requests;
/* -DSCENE=: one of them, where it is known to be enough. */
#ifdef SCENE
#define IN(s) (SCENE == s)
#else
#define IN(s) true
#endif

/* The context. */
bool ctx_dead;
byte readers;		/* context->sem */
bool writer;

/* The endpoint. */
bool published;		/* its handle */
byte refs;		/* 0: its memory is gone */
bool mutex;		/* ep->obj.mutex */
mtype state;
bool dead;
bool settled;
bool todo_break, todo_kick, todo_disconnect;
bool work_queued, work_runs;
bool work_acts;		/* past its look at ep->dead */
bool deadline_queued, deadline_runs;
bool renewed;
bool ending;		/* somebody is in dapx_ep_teardown() */
bool silent;		/* who ended it has returned */

/* Its request queue. */
mtype mode;
byte head, tail, limit;
bool limited;
byte flush_until;
byte outstanding;
bool slot_free;
bool stalled;
bool timer, timer_runs;	/* q->linger ... */
bool lingered;		/* ... once */
mtype req[REQUESTS];

/* Its queue pair. */
bool qp_there;
bool cq_there;
bool qp_error;		/* qp_state is IB_QPS_ERR */
bool qp_failed;		/* the device put it in error by itself */
bool drops;		/* the device drops what it has, instead of flushing it, when it ends ... */
bool dropped;		/* ... and has done it */
bool handler_runs;	/* a completion or an event of it is being handled */

/* Its CM id. */
bool cm;		/* ep->cm */
byte cm_refs;
bool cm_id;		/* cm->id */
bool id_there;
bool id_destroying;
bool handler_mutex;
bool expel_queued, expel_runs;
bool cm_disconnect;	/* it was asked to */

/* Where its events go. */
bool evd_lock;
byte outcomes, ends;	/* events of the connection */
bool end_pending;	/* the last one waits for the last completion */
byte ended;		/* enders that returned */

#define ep_touch assert(refs > 0)
#define cm_touch assert(cm_refs > 0)

inline lock(m) { atomic { !m -> m = true } }
inline unlock(m) { m = false }

inline ep_get() { assert(refs > 0); refs++ }
inline dapx_object_put() { assert(refs > 0); refs-- }
inline cm_put() { assert(cm_refs > 0); cm_refs-- }

/* ------------------------------------------------------------------- events */

/* Of the connection; below ep->lock. */
inline dapx_ep_post_event(count)
{
	if
	:: !dead ->
		assert(!silent);
		count++;
		assert(count == 1)
	:: else
	fi
}

/* The event of a request: into the ring, or it waits for room and keeps its slot. */
inline dapx_evd_post(i)
{
	assert(req[i] == HANDLER);
	if
	:: scene != WAITS -> req[i] = COMPLETED; assert(!silent); slot_free = true
	:: scene == WAITS -> req[i] = BACKLOG
	fi
}

/* ------------------------------------------------------------- request queue */

/* Takes no lock: the look at ep->dead and what follows are two things. */
inline dapx_ep_queue(todo)
{
	if
	:: atomic { dead -> ep_touch }
	:: atomic { !dead -> ep_touch }
	   atomic { ep_touch; todo = true; work_queued = true }
	fi
}

#define idle (outstanding == 0 && (!limited || head == limit))

/* dapx_queue_run_locked(), below q->lock: there is nothing to see in between */
inline dapx_queue_run_locked()
{
		ep_touch;
		do
		:: mode == STOP || mode == HOLD || head == tail || (limited && head == limit) -> break
		:: else ->
			if
			:: mode == FLUSH && outstanding > 0 -> break
			:: !slot_free -> stalled = true; break
			:: else ->
				stalled = false;
				slot_free = false;
				assert(req[head] == PUBLISHED);
				if
				:: mode == RUN ->
					assert(qp_there && cq_there);
					req[head] = DEVICE;
					outstanding++
				:: else ->
					req[head] = HANDLER;
					if
					:: dead -> req[head] = DISCARDED; slot_free = true
					:: else -> dapx_evd_post(head)
					fi
				fi;
				head++
			fi
		od;
		if
		:: mode == RUN && scene == LINGERS && !lingered -> timer = true; lingered = true
		:: else
		fi
}

inline dapx_queue_run()
{
	atomic { dapx_queue_run_locked() }
}

/* That all has ended which was published before is looked at in more than one place at once. */
inline dapx_ep_post_end()
{
	if
	:: end_pending ->
		assert(req[0] != DEVICE && req[0] != HANDLER && req[1] != DEVICE && req[1] != HANDLER);
		end_pending = false;
		dapx_ep_post_event(ends)
	:: else
	fi
}

inline dapx_ep_try_end()
{
	if
#ifndef WITHOUT_dapx_ep_try_end__dapx_queue_is_flushed /* in ENDS */
	:: mode == FLUSH && outstanding == 0 && (stalled || head >= flush_until) -> dapx_ep_post_end()
	:: else
#else
	:: true -> dapx_ep_post_end()
#endif
	fi
}

inline dapx_ep_update_modes()
{
	atomic {
		ep_touch;
		if
		:: dead -> mode = STOP
		:: else ->
			if
			:: state == CONNECTED || state == DISCONNECT_PENDING -> mode = RUN
			:: state == DISCONNECTED -> mode = FLUSH; limited = false; flush_until = tail
			:: else -> mode = HOLD
			fi
		fi;
		dapx_queue_run_locked();
		dapx_ep_try_end()
	}
}

inline dapx_ep_completed()
{
	atomic {
		ep_touch;
#ifndef WITHOUT_dapx_ep_completed__dapx_ep_try_end /* in ENDS */
		if
		:: (state == DISCONNECTED || dead) && outstanding == 0 -> dapx_ep_try_end()
		:: else
		fi
#endif
	}
	if
	:: state == DISCONNECT_PENDING && idle -> dapx_ep_queue(todo_disconnect)
	:: else
	fi
}

inline dapx_ep_qp_to_error()
{
	atomic {
		ep_touch;
		if
		:: qp_there -> qp_error = true
		:: else
		fi
	}
}

/* dapx_device_drops(): there are devices of either kind */
inline dapx_ep_qp_stop()
{
	d_step {
		ep_touch;
		if
		:: qp_there && drops ->
			dropped = true;
			i = 0;
			do
			:: i < REQUESTS ->
				if
				:: req[i] == DEVICE -> req[i] = DISCARDED
				:: else
				fi;
				i++
			:: else -> break
			od;
			i = 0
		:: else
		fi
	}
	dapx_ep_qp_to_error()
}

/* --------------------------------------------------------------------- state */

inline dapx_ep_end()
{
	state = DISCONNECTED;
	if
	:: !dead -> end_pending = true
	:: else
	fi
}

inline dapx_ep_fail()
{
	atomic {
		ep_touch;
		if
		:: dead
		:: else ->
			if
			:: state == COMPLETION_PENDING || state == CONNECTED ||
			   state == DISCONNECT_PENDING ->
				dapx_ep_end();
				todo_break = true;
				work_queued = true
			:: state == DISCONNECTED ->
				todo_break = true;
				work_queued = true
			:: else
			fi
		fi
	}
}

inline dapx_ep_connect_failed(did)
{
	atomic {
		ep_touch;
		did = state == ACTIVE_PENDING || state == COMPLETION_PENDING;
		if
		:: did ->
			state = DISCONNECTED;
			dapx_ep_post_event(outcomes)
		:: else
		fi
	}
	if
	:: did ->
		ep_touch;
		deadline_queued = false;
		dapx_ep_qp_to_error();
		dapx_ep_update_modes()
	:: else
	fi
}

inline dapx_ep_connected(did)
{
	atomic {
		ep_touch;
		did = cm && !dead && (state == ACTIVE_PENDING || state == COMPLETION_PENDING);
		if
		:: did ->
			state = CONNECTED;
			dapx_ep_post_event(outcomes)
		:: else
		fi
	}
	if
	:: did ->
		ep_touch;
		deadline_queued = false;
		dapx_ep_update_modes()
	:: else
	fi
}

inline dapx_ep_disconnected(did)
{
	atomic {
		ep_touch;
		did = state == CONNECTED || state == DISCONNECT_PENDING ||
		      state == ACTIVE_PENDING || state == COMPLETION_PENDING;
		if
		:: did ->
			dapx_ep_end()
		:: else
		fi
	}
	if
	:: did -> dapx_ep_qp_to_error(); dapx_ep_update_modes()
	:: else
	fi
}

/* ------------------------------------------------------- connection manager */

inline dapx_cm_disconnect()
{
	atomic {
		ep_touch;
		if
		:: cm ->
			cm_touch;
			if
			:: cm_id -> assert(id_there); cm_disconnect = true
			:: else
			fi
		:: else
		fi
	}
}

/* rdma_destroy_id() waits for the callback that runs, and lets none run any more. */
inline rdma_destroy_id()
{
	atomic { !handler_mutex -> assert(id_there); id_destroying = true }
	atomic { assert(!handler_mutex); id_there = false }
}

inline dapx_cm_shutdown(took)
{
	atomic { cm_touch; took = cm_id; cm_id = false }
	if
	:: took -> rdma_destroy_id()
	:: else
	fi
}

inline dapx_cm_destroy_async()
{
	atomic {
		cm_touch;
		if
		:: !expel_queued -> cm_refs++; expel_queued = true
		:: else
		fi
	}
}

inline dapx_cm_cancel_destroy()
{
	atomic {
		!expel_runs -> cm_touch;
		if
		:: expel_queued -> expel_queued = false; cm_put()
		:: else
		fi
	}
}

/* ------------------------------------------------------------------ teardown */

inline dapx_ep_stop(was_dead)
{
	atomic {
		ep_touch;
		was_dead = dead;
#ifndef WITHOUT_dapx_ep_stop__dead
		dead = true
#endif
	}
	if
	:: was_dead
	:: else ->
#ifndef WITHOUT_stop
#ifndef WITHOUT_dapx_ep_stop__cancel_work_sync
		atomic { !work_runs -> ep_touch; work_queued = false }
#endif
#ifndef WITHOUT_dapx_ep_stop__cancel_delayed_work_sync /* in SET_UP */
		atomic { !deadline_runs -> ep_touch; deadline_queued = false }
#endif
#ifndef WITHOUT_dapx_ep_stop__dapx_ep_update_modes
		dapx_ep_update_modes();
#endif
#ifndef WITHOUT_dapx_ep_stop__dapx_queue_quiesce /* in LINGERS */
		atomic { !timer_runs -> ep_touch; timer = false }
#endif
#ifndef WITHOUT_dapx_ep_stop__dapx_ep_qp_stop
		dapx_ep_qp_stop()
#endif
#endif
		skip
	fi
}

inline dapx_ep_drain()
{
	outstanding == 0
}

inline dapx_qp_destroy()
{
#ifndef WITHOUT_dapx_qp_destroy__ib_destroy_qp
	qp_there = false;
#endif
#ifndef WITHOUT_dapx_qp_destroy__ib_free_cq
	atomic { !handler_runs -> cq_there = false }
#endif
	skip
}

/* dapx_evd_drop() */
inline dapx_ep_drop_events()
{
	d_step {
		!evd_lock;
		i = 0;
		do
		:: i < REQUESTS ->
			if
			:: req[i] == BACKLOG -> req[i] = DISCARDED; slot_free = true
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0
	}
}

inline dapx_cm_release_ep()
{
	atomic { cm -> cm_put() }
}

inline dapx_ep_settle(t)
{
	if
	:: settled
	:: else ->
		/* Nothing consumes the ring: by a work of the endpoint, or in its place. */
		assert(!work_acts);
#ifndef WITHOUT_cm
		if
		:: cm ->
#ifndef WITHOUT_dapx_ep_settle__dapx_cm_shutdown
			dapx_cm_shutdown(t);
#endif
#ifndef WITHOUT_dapx_ep_settle__dapx_cm_cancel_destroy /* in SET_UP */
			dapx_cm_cancel_destroy();
#endif
			skip
		:: else
		fi;
#endif
#ifndef WITHOUT_drain
		if
		:: dropped
		:: else -> dapx_ep_drain()
		fi;
#endif
		settled = true
	fi
}

inline dapx_ep_teardown(t)
{
	atomic { assert(!ending); ending = true }
	dapx_ep_stop(t);
	dapx_ep_settle(t);
#ifndef WITHOUT_destroy
	dapx_qp_destroy();
#endif
#ifndef WITHOUT_events
#ifndef WITHOUT_dapx_ep_teardown__dapx_ep_drop_events /* in WAITS */
	dapx_ep_drop_events();
#endif
#ifndef WITHOUT_dapx_ep_teardown__cancel_work_sync /* in WAITS */
	atomic { !work_runs -> ep_touch; work_queued = false }
#endif
#ifndef WITHOUT_dapx_ep_teardown__dapx_cm_release_ep
	if
	:: cm -> dapx_cm_release_ep()
	:: else
	fi;
#endif
#endif
	/* What is still in the ring never begins. */
	d_step {
		i = 0;
		do
		:: i < REQUESTS ->
			if
			:: req[i] == PUBLISHED -> req[i] = DISCARDED
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		cm = false;
		ending = false;
		silent = true
	}
}

/* -------------------------------------------------------------------- enders */

/* dapx_context_enter() and dapx_object_get(); true: it goes on, with both. */
inline enter(ok)
{
	atomic {
		!writer ->
		ok = !ctx_dead && published;
		if
		:: ok -> readers++; ep_get()
		:: else
		fi
	}
}

inline leave()
{
	atomic { dapx_object_put(); readers-- }
}

inline dapx_object_unpublish(ok)
{
	atomic { ok = published; published = false }
}

inline dapx_ep_free(ok, t)
{
#ifndef WITHOUT_dapx_ep_free__mutex_lock
	lock(mutex);
#endif
	ok = true;
#ifndef WITHOUT_dapx_ep_free__EBADFD /* in SET_UP */
	atomic {
		ep_touch;
		ok = state != RESERVED && state != PASSIVE_PENDING && state != TENTATIVE_PENDING
	}
#endif
	if
	:: ok ->
#ifndef WITHOUT_dapx_ep_free__dapx_object_unpublish
		dapx_object_unpublish(ok)
#endif
	:: else
	fi;
	if
	:: ok ->
		/* Those are their listener's. */
		assert(state != RESERVED && state != PASSIVE_PENDING && state != TENTATIVE_PENDING);
		dapx_ep_teardown(t)
	:: else
	fi;
	unlock(mutex);
#ifndef WITHOUT_dapx_ep_free__dapx_object_put
	if
	:: ok -> atomic { dapx_object_put() }
	:: else
	fi
#endif
}

inline dapx_ep_finish()
{
	dapx_ep_qp_to_error();
	dapx_ep_update_modes();
#ifndef WITHOUT_dapx_ep_finish__dapx_ep_drain /* in ENDS */
	dapx_ep_drain();
#endif
	!work_queued && !work_runs;
	dapx_ep_update_modes();
	atomic { dapx_ep_post_end() }
}

/* dapx_cmd_ep_reset() and dapx_ep_reinit() */
inline dapx_ep_reinit(t)
{
	lock(mutex);
	if
	:: !dead && state == DISCONNECTED ->
		dapx_ep_finish();
		dapx_ep_teardown(t);
		d_step {
			/* dapx_queue_reset(), dapx_ep_install_qp() */
			assert(dropped || (outstanding == 0 && slot_free));
			outstanding = 0;
			slot_free = true;
			dropped = false;
			head = tail;
			limited = false;
			stalled = false;
			qp_there = true;
			cq_there = true;
			qp_error = false;
			qp_failed = false;
			todo_break = false;
			todo_kick = false;
			todo_disconnect = false;
			settled = false;
			dead = false;
			renewed = true;
			state = UNCONNECTED
		}
		dapx_ep_update_modes()
	:: else
	fi;
	unlock(mutex)
}

/* Of the process' death, of the file's close, of the device's removal: the same. */
inline dapx_context_teardown(ok, t)
{
	ctx_dead = true;
#ifndef WITHOUT_dapx_context_teardown__down_write
	atomic { !writer && readers == 0 -> writer = true }
#endif
	/* dapx_objects_destroy_sources(), dapx_cm_return_candidate() */
	atomic {
		if
		:: published && (state == RESERVED || state == PASSIVE_PENDING) -> state = UNCONNECTED
		:: else
		fi
	}
	/* dapx_object_stop() and dapx_object_settle() of all: what matters with several only */
	if
	:: published -> dapx_ep_stop(t); dapx_ep_settle(t)
	:: else
	fi;
#ifndef WITHOUT_dapx_context_teardown__dapx_objects_destroy
	dapx_object_unpublish(ok);
	if
	:: ok -> dapx_ep_teardown(t); atomic { dapx_object_put() }
	:: else
	fi;
#endif
	writer = false
}

proctype ender(mtype what)
{
	bool ok, t;
	byte i;

	if
	:: what == FREE ->
		enter(ok);
		if
		:: ok -> dapx_ep_free(ok, t); leave()
		:: else
		fi
	:: what == RESET ->
		enter(ok);
		if
		:: ok -> dapx_ep_reinit(t); leave()
		:: else
		fi
	:: what == TEARDOWN -> dapx_context_teardown(ok, t)
	:: what == NOTHING
	fi;
	atomic { ok = false; t = false; ended++ }
}

/* ---------------------------------------------------------------- the process */

inline dapx_ep_doorbell()
{
	if
	:: atomic { state == CONNECTED || state == DISCONNECTED -> ep_touch }
	   dapx_queue_run()
	:: atomic { else -> ep_touch }
	fi
}

inline dapx_cmd_ep_connect()
{
	lock(mutex);
	if
	:: !dead && state == UNCONNECTED && !cm ->
		/* dapx_cm_for_ep(), dapx_ep_enter_active() */
		atomic {
			ep_touch;
			cm_refs = 1;
			cm_id = true;
			id_there = true;
			cm = true;
			state = ACTIVE_PENDING
		}
		atomic { ep_touch; deadline_queued = true }
	:: else
	fi;
	unlock(mutex)
}

inline dapx_cmd_ep_accept()
{
	lock(mutex);
	if
	:: !dead && (state == PASSIVE_PENDING || state == TENTATIVE_PENDING) && !cm ->
		atomic {
			ep_touch;
			cm_refs = 1;
			cm_id = true;
			id_there = true;
			cm = true;
			state = COMPLETION_PENDING
		}
		dapx_ep_update_modes()
	:: else
	fi;
	unlock(mutex)
}

inline dapx_cmd_ep_disconnect(abrupt, t)
{
	lock(mutex);
	if
	:: !dead && (state == ACTIVE_PENDING || state == COMPLETION_PENDING) ->
		dapx_ep_disconnected(t);
		if
		:: cm -> dapx_cm_shutdown(t)
		:: else
		fi
	:: !dead && state == CONNECTED && !abrupt ->
		/* dapx_ep_disconnect_graceful() */
		atomic { ep_touch; limit = tail; limited = true }
		atomic {
			t = state == CONNECTED;
			if
			:: t -> state = DISCONNECT_PENDING
			:: else -> limited = false
			fi
		}
		dapx_ep_update_modes();
		dapx_ep_completed()
	:: !dead && (state == CONNECTED || state == DISCONNECT_PENDING) && abrupt ->
		dapx_ep_disconnected(t);
		if
		:: t -> dapx_cm_disconnect()
		:: else
		fi
	:: else
	fi;
	unlock(mutex)
}

proctype process()
{
	bool ok, t, abrupt;

	do
	:: tail < requests && tail == head && !renewed ->
		atomic { assert(req[tail] == NEW); req[tail] = PUBLISHED; tail++ }
		enter(ok);
		if
		:: ok -> dapx_ep_doorbell(); leave()
		:: else -> break
		fi
	:: state == UNCONNECTED && !renewed && !cm ->
		enter(ok);
		if
		:: ok -> dapx_cmd_ep_connect(); leave()
		:: else -> break
		fi
	:: state == PASSIVE_PENDING || state == TENTATIVE_PENDING ->
		enter(ok);
		if
		:: ok -> dapx_cmd_ep_accept(); leave()
		:: else -> break
		fi
	:: (scene == SET_UP && cm) || tail == requests && tail > 0 ->
		if
		:: scene == SET_UP || scene == STALLS || scene == ENDS -> abrupt = true
		:: abrupt = false
		fi;
		enter(ok);
		if
		:: ok -> dapx_cmd_ep_disconnect(abrupt, t); leave()
		:: else
		fi;
		break
	:: tail == requests || state == RESERVED || renewed || !published -> break
	od;
	atomic { ok = false; t = false; abrupt = false }
}

/* --------------------------------------------- works, the timer, the device, the CM */

proctype work()
{
	bool t_break, t_kick, t_disconnect, t;

end:	do
	:: atomic {
		work_queued ->
		ep_touch;
		work_queued = false;
		work_runs = true;
		t_break = todo_break;
		t_kick = todo_kick;
		t_disconnect = todo_disconnect;
		todo_break = false;
		todo_kick = false;
		todo_disconnect = false
	   }
	   atomic { ep_touch; work_acts = !dead }
	   if
	   :: work_acts ->
		if
		:: t_kick -> dapx_queue_run(); dapx_ep_completed()
		:: else
		fi;
		if
		:: t_disconnect && state == DISCONNECT_PENDING && idle -> dapx_cm_disconnect()
		:: else
		fi;
		if
		:: t_break ->
			dapx_ep_qp_to_error();
			dapx_ep_update_modes();
			dapx_cm_disconnect()
		:: else
		fi
	   :: else
	   fi;
	   atomic {
		work_acts = false;
		work_runs = false;
		t_break = false;
		t_kick = false;
		t_disconnect = false
	   }
	od
}

/* dapx_ep_deadline() */
proctype deadline()
{
	bool t;

end:	do
	:: atomic { deadline_queued -> ep_touch; deadline_queued = false; deadline_runs = true }
	   atomic {
		ep_touch;
		t = state == ACTIVE_PENDING;
		if
		:: t -> state = DISCONNECTED; dapx_ep_post_event(outcomes)
		:: else
		fi
	   }
	   if
	   :: t ->
		dapx_ep_qp_to_error();
		dapx_ep_update_modes();
		dapx_cm_shutdown(t)
	   :: else
	   fi;
	   atomic { t = false; deadline_runs = false }
	od
}

/* dapx_queue_busy_deferred() */
proctype linger()
{
end:	do
	:: atomic { timer -> ep_touch; timer = false; timer_runs = true }
	   dapx_queue_run();
	   timer_runs = false
	od
}

/* dapx_cm_destroy_work(); only a shutdown of its own makes cm->obj.mutex matter. */
proctype expel()
{
	bool t;

end:	do
	:: atomic { expel_queued -> cm_touch; expel_queued = false; expel_runs = true }
	   dapx_cm_shutdown(t);
	   atomic { t = false; cm_put(); expel_runs = false }
	od
}

proctype device()
{
	byte i;
	bool fails, quiet;

end:	do
	:: atomic {
		outstanding > 0 && !dropped && (qp_error || qp_failed || scene != STALLS) ->
		i = (req[0] == DEVICE -> 0 : 1);
		assert(req[i] == DEVICE);
		/* The device needs the CQ, the handler the slot. */
		assert(cq_there);
		ep_touch;
		handler_runs = true;
		req[i] = HANDLER;
		fails = qp_error || qp_failed
	   }
	   /* dapx_send_done() */
	   atomic { ep_touch; quiet = dead }
	   atomic {
		!evd_lock -> ep_touch;
		if
		:: quiet -> req[i] = DISCARDED; slot_free = true
		:: else -> dapx_evd_post(i)
		fi;
		if
		:: slot_free && stalled && !dead -> todo_kick = true; work_queued = true
		:: else
		fi
	   }
	   if
	   :: fails -> dapx_ep_fail()
	   :: else
	   fi;
	   atomic { ep_touch; outstanding-- }
	   /* dapx_queue_retire(); doorbell.pml says when it has to run the ring. */
	   if
	   :: mode != FLUSH && !stalled
	   :: dapx_queue_run()
	   fi;
	   dapx_ep_completed();
	   atomic { handler_runs = false; i = 0; fails = false; quiet = false }
	od
}

/* The device finds a fault, and says so: dapx_ep_qp_event(). */
proctype qp_event()
{
end:	atomic { qp_there -> qp_failed = true; dapx_ep_fail() }
}

/* The process reads, and what waited finds room: dapx_evd_flush(). */
proctype evd()
{
	byte i;

end:	do
	:: atomic {
		!evd_lock && (req[0] == BACKLOG || req[1] == BACKLOG) ->
		evd_lock = true;
		i = (req[0] == BACKLOG -> 0 : 1);
		assert(!silent);
		req[i] = COMPLETED;
		slot_free = true;
		i = 0
	   }
	   if
	   :: atomic { stalled -> ep_touch }
		dapx_ep_queue(todo_kick)
	   :: else
	   fi;
	   evd_lock = false
	od
}

/* The CM's callbacks for the id, one of the set-up and one of the end. */
proctype rdma_cm(bool set_up)
{
	bool told, t;

end:	do
	:: atomic {
		id_there && !id_destroying && !handler_mutex &&
		(!set_up || (!told && (cm_disconnect || scene == ENDS))) ->
		handler_mutex = true;
		cm_touch
	   }
	   if
	   :: !set_up ->
		set_up = true;
		ep_touch;
		if
		:: dapx_ep_connected(t)
		:: dapx_ep_connect_failed(t)
		:: dapx_cm_destroy_async(); dapx_ep_connect_failed(t)
		fi
	   :: else ->
		told = true;
		dapx_ep_disconnected(t)
	   fi;
	   atomic { t = false; handler_mutex = false }
	od
}

init
{
	byte i;

	atomic {
		published = true;
		refs = 1;
		qp_there = true;
		cq_there = true;
		slot_free = true;
		mode = HOLD;
		for (i : 0 .. REQUESTS - 1) {
			req[i] = NEW
		}
		i = 0;
		run process();
		run work();
		if
		:: IN(STALLS) -> scene = STALLS
		:: IN(LINGERS) -> scene = LINGERS; run linger()
		:: IN(SET_UP) -> scene = SET_UP; run deadline(); run expel()
		:: IN(WAITS) -> scene = WAITS; run evd()
		:: IN(ENDS) -> scene = ENDS
		:: IN(BREAKS) -> scene = BREAKS; run qp_event()
		fi;
		if
		:: scene == SET_UP ->
			run rdma_cm(false);
			if
			:: state = RESERVED
			:: state = UNCONNECTED
			:: state = PASSIVE_PENDING
			:: state = TENTATIVE_PENDING
			fi
		:: else ->
			requests = (scene == WAITS -> REQUESTS : 1);
			if
			:: drops = true
			:: drops = false
			fi;
			run rdma_cm(true);
			run device();
			state = CONNECTED;
			mode = RUN;
			outcomes = 1;
			cm = true;
			cm_refs = 1;
			cm_id = true;
			id_there = true
		fi;
		if
		:: scene == SET_UP || scene == STALLS -> run ender(FREE); run ender(FREE)
		:: scene == SET_UP -> run ender(TEARDOWN); run ender(TEARDOWN)
		:: scene == SET_UP || scene == ENDS -> run ender(FREE); run ender(RESET)
		:: scene == WAITS -> run ender(RESET); run ender(TEARDOWN)
		:: scene == ENDS || scene == WAITS -> run ender(NOTHING); run ender(RESET)
		:: run ender(FREE); run ender(TEARDOWN)
		:: run ender(NOTHING); run ender(NOTHING)
		fi
	}
	timeout;
	assert(ended == ENDERS);
	if
	:: refs == 0 -> assert(!published && !qp_there && !cq_there && !id_there && cm_refs == 0)
	:: else -> assert(refs == 1 && published && !ctx_dead)
	fi;
	/* The end of a connection is reported. */
	assert(refs == 0 || !end_pending || scene == STALLS);
	/* A graceful end comes, unless the peer keeps a request. */
	assert(refs == 0 || state != DISCONNECT_PENDING || scene == STALLS);
	for (i : 0 .. REQUESTS - 1) {
		assert(req[i] != DEVICE || scene == STALLS);
		assert(req[i] != HANDLER && req[i] != BACKLOG);
		/* A living endpoint takes what it was told of, and loses nothing. */
		assert(refs == 0 || renewed || req[i] != DISCARDED);
		assert(refs == 0 || state != DISCONNECTED || renewed || req[i] == NEW || req[i] == COMPLETED)
	}
}
