// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that do anything, in any order, with several threads that share their objects. Each
 * runs some programs (program.h). A program that reaches code, or states, which none has reached
 * before (coverage.h) is kept, and most programs are kept ones that were mutated. Some processes
 * run at a time; some are killed, some take a device away, some have allocations fail. Results are
 * not looked at: the kernel must not report a fault, must not tell of what was freed before, and
 * must have in the end what it had before.
 *
 *	fuzz				as a test
 *	fuzz --repeat FILE [SECONDS]	the programs of a file, as they are
 *	fuzz --keep [SECONDS]		then write the fewest programs that reach all that was
 *					reached to $DAPX_OUT/fuzz-corpus, for fuzz/corpus
 *
 * DAPX_FUZZ_SECONDS: how long. Each program is in the kernel's log before it runs, and --repeat
 * takes a file with such lines, too.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness/dice.h"
#include "../harness/fabric.h"
#include "../harness/machine.h"
#include "../harness/process.h"
#include "../harness/resources.h"
#include "coverage.h"
#include "kernel_log.h"
#include "ops.h"

#define WORKERS 4
#define CORPUS "selftests/module/fuzz/corpus"
#define CORPUS_MAX 4096
#define RECENT 32
/* A program that takes longer waits for something that does not come. */
#define LONGEST_MS 1000

static bool one_in(unsigned int n)
{
	return dice() % n == 0;
}

/* ---- the corpus ---- */

static struct program *corpus;
static unsigned int corpus_length;

static void corpus_add(const struct program *program, unsigned int length)
{
	struct program *place;

	if (!length)
		return;
	place = &corpus[corpus_length < CORPUS_MAX ? corpus_length++ : dice() % CORPUS_MAX];
	*place = *program;
	place->length = length;
}

static int corpus_read(const char *path)
{
	FILE *file = fopen(path, "r");
	struct program program;

	if (!file)
		return because("%s: %m", path);
	while (program_read(file, &program))
		corpus_add(&program, program.length);
	fclose(file);
	return 0;
}

static const char *path_of(const char *variable, const char *name)
{
	static char path[512];
	const char *folder = getenv(variable);

	snprintf(path, sizeof(path), "%s/%s", folder ?: ".", name);
	return path;
}

/* ---- workers ---- */

struct worker {
	pid_t pid;			/* 0: none */
	struct life life;
	struct life before;		/* a fault may be reported late */
	struct life_result *result;
	unsigned int begun;		/* programs of result, when it was last looked at */
	unsigned int buffer;
	bool killed_early;
	__u64 deadline;
};

static struct {
	struct worker workers[WORKERS];
	struct host hosts[2];
	unsigned int programs;
	unsigned int kills;
	unsigned int removals;
	unsigned int added;
} fuzz;

static int fuzz_open(void)
{
	struct life_result *results;
	unsigned int i;

	corpus = calloc(CORPUS_MAX, sizeof(*corpus));
	results = mmap(NULL, WORKERS * sizeof(*results), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!corpus || results == MAP_FAILED)
		return because("no memory");
	for (i = 0; i < WORKERS; i++) {
		fuzz.workers[i].result = &results[i];
		fuzz.workers[i].buffer = i * PROGRAM_THREADS;
	}
	for (i = 0; i < 2; i++) {
		if (host_open(&fuzz.hosts[i], i) || device_note(&fuzz.hosts[i]))
			return -1;
		close(fuzz.hosts[i].fd);
	}
	coverage_open(WORKERS * PROGRAM_THREADS);
	/* What a killed worker started becomes this process' child, for await_orphans(). */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return kernel_log_open() || ops_prepare() ? -1 : 0;
}

/* A killed process may have begun to take a device away; that goes on without it. */
static int await_orphans(void)
{
	__u64 deadline = in_ms(PATIENCE_MS);

	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		if (now_ns() > deadline)
			return because("what a killed process started does not end");
		sleep_ms(10);
	}
	return 0;
}

/*
 * A process that took a device away may have been killed before it had brought it back; another
 * may be about to.
 */
static int bring_devices_back(void)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	char path[128];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct host *host = &fuzz.hosts[i];

		snprintf(path, sizeof(path), "/sys/class/infiniband/%s", host->device);
		while (access(path, F_OK) && device_add(host)) {
			if (now_ns() > deadline)
				return because("%s cannot be added again", host->device);
			sleep_ms(10);
		}
	}
	return 0;
}

static void worker_start(struct worker *worker, const struct life *life, bool may_kill)
{
	const struct rlimit no_core = {};
	unsigned int i;

	worker->before = worker->life;
	worker->life = *life;
	memset(worker->result, 0, sizeof(*worker->result));
	for (i = 0; i < life->length; i++)
		kernel_log_program(&life->programs[i]);
	worker->begun = 0;
	worker->killed_early = may_kill && one_in(4);
	worker->deadline = in_ms(worker->killed_early ? dice() % 200 : LONGEST_MS);
	worker->pid = fork();
	if (worker->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &no_core);
	/* It may harm itself, and then its end is of no interest. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	ops_live(life, worker->buffer, worker->result);
	_exit(0);
}

/* What each of its threads waits for. */
static int cannot_be_killed(pid_t pid)
{
	char command[128];

	fflush(stdout);
	snprintf(command, sizeof(command),
		 "cd /proc/%d/task && grep -H . */wchan */stack; grep State: */status", pid);
	if (system(command))
		printf("# %s: nothing\n", command);
	return because("process %d cannot be killed", pid);
}

/* Each of its programs that reached new ground, up to where it did. */
static void keep_some(const struct worker *worker)
{
	const struct life_result *result = worker->result;
	unsigned int i;

	for (i = 0; i < result->begun; i++) {
		const struct program *program = &worker->life.programs[i];

		/* To take a device away is costly, and special. */
		if (!result->programs[i].edges || program_has(program, OP_remove))
			continue;
		corpus_add(program, result->programs[i].length);
		fuzz.added++;
	}
}

/* 1: it is over; 0: it goes on; -1: it cannot be ended, or found something. */
static int worker_look(struct worker *worker)
{
	unsigned int begun = __atomic_load_n(&worker->result->begun, __ATOMIC_RELAXED);
	__u64 deadline;

	if (begun > worker->begun && !worker->killed_early)
		worker->deadline = in_ms(LONGEST_MS);
	worker->begun = begun;
	if (waitpid(worker->pid, NULL, WNOHANG) == 0) {
		if (now_ns() < worker->deadline)
			return 0;
		kill(worker->pid, SIGKILL);
		fuzz.kills++;
		deadline = in_ms(PATIENCE_MS);
		while (waitpid(worker->pid, NULL, WNOHANG) == 0) {
			if (now_ns() > deadline)
				return cannot_be_killed(worker->pid);
			sleep_ms(1);
		}
	}
	worker->pid = 0;
	fuzz.programs += worker->result->begun;
	if (worker->result->finding[0])
		return because("%s", worker->result->finding);
	keep_some(worker);
	return 1;
}

/* Until a child ends, or for so long. */
static void await_child(unsigned int ms)
{
	const struct timespec span = { .tv_nsec = ms * 1000000L };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigtimedwait(&set, NULL, &span);
}

static void report_life(FILE *file, const struct life *life, unsigned int begun)
{
	unsigned int i;

	for (i = 0; i < begun; i++)
		program_print(file, &life->programs[i]);
}

static void report(FILE *file)
{
	unsigned int i;

	for (i = 0; i < WORKERS; i++) {
		const struct worker *worker = &fuzz.workers[i];

		fprintf(file, "# worker %u, before\n", i);
		report_life(file, &worker->before, worker->before.length);
		fprintf(file, "# worker %u\n", i);
		report_life(file, &worker->life, worker->result->begun);
	}
}

/* @what NULL: why() says it. */
static int finding(const char *what)
{
	const char *path = path_of("DAPX_OUT", "fuzz-finding");
	FILE *file = fopen(path, "w");

	if (file) {
		report(file);
		fclose(file);
	}
	report(stdout);
	printf("# to see it again: fuzz --repeat %s\n", path);
	fflush(stdout);
	return what ? because("%s", what) : -1;
}

/* Half of the time one of the last: these are where new ground was found. */
static const struct program *some_kept(void)
{
	unsigned int n = corpus_length;

	if (n > RECENT && one_in(2))
		return &corpus[n - 1 - dice() % RECENT];
	return &corpus[dice() % n];
}

static void choose(struct program *program)
{
	/* Each as it is, first. */
	static unsigned int next;
	struct op removal;

	if (next < corpus_length) {
		*program = corpus[next++];
		return;
	}
	if (!corpus_length || one_in(16)) {
		program_make(program);
	} else {
		*program = *some_kept();
		program_mutate(program, &corpus[dice() % corpus_length]);
	}
	if (one_in(300) && program->length) {
		removal = (struct op) { .kind = OP_remove, .who = dice() & 7 };
		program->ops[dice() % program->length] = removal;
		fuzz.removals++;
	}
}

/* @given: only these programs, over and over, NULL: any. */
static int fuzz_play(unsigned int seconds, const struct program *given, unsigned int n)
{
	unsigned int turn = 0, i, left = WORKERS;
	__u64 end = in_ms(1000 * seconds);
	struct life life;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (now_ns() < end || left) {
		left = 0;
		for (i = 0; i < WORKERS; i++) {
			struct worker *worker = &fuzz.workers[i];

			if (worker->pid && worker_look(worker) < 0)
				return finding(NULL);
			if (!worker->pid && now_ns() < end) {
				program_leave_out();
				for (life.length = 0; life.length < LIFE_MAX; life.length++) {
					struct program *next = &life.programs[life.length];

					if (given)
						*next = given[turn++ % n];
					else
						choose(next);
				}
				if (bring_devices_back())
					return finding(NULL);
				worker_start(worker, &life, true);
				if (worker->pid < 0)
					return because("fork: %m");
			}
			left += worker->pid != 0;
		}
		if (kernel_log_has_fault())
			return finding("the kernel reported a fault");
		await_child(20);
	}
	return 0;
}

static void fuzz_tell(void)
{
	printf("# %u programs, %u killed, %u removals of a device\n",
	       fuzz.programs, fuzz.kills, fuzz.removals);
	printf("# %u edges%s, %u programs kept, %u of them new\n", coverage_reached(),
	       coverage_works() ? "" : " (no KCOV)", corpus_length, fuzz.added);
}

static unsigned int seconds_to_play(void)
{
	const char *seconds = getenv("DAPX_FUZZ_SECONDS");

	if (seconds)
		return atoi(seconds);
	/* The debug kernel sees most, and its usual scale is a tenth. */
	return on_debug_kernel() ? count(300, 3600) : count(10, 600);
}

static int play_as_test(void)
{
	char before[512];

	if (fuzz_open() || rdma_resources(before) ||
	    corpus_read(path_of("DAPX_TOP", CORPUS)) ||
	    fuzz_play(seconds_to_play(), NULL, 0))
		return -1;
	fuzz_tell();
	return await_orphans() || bring_devices_back() || await_resources(before);
}

/* ---- by hand ---- */

static int repeat(const char *path, unsigned int seconds)
{
	if (fuzz_open() || corpus_read(path))
		return -1;
	if (!corpus_length)
		return because("%s has no program", path);
	if (fuzz_play(seconds, corpus, corpus_length))
		return -1;
	fuzz_tell();
	return 0;
}

static int shorter(const void *a, const void *b)
{
	const struct program *x = a, *y = b;

	return (int)x->length - (int)y->length;
}

static int keep(unsigned int seconds)
{
	struct worker *worker = &fuzz.workers[0];
	struct life life = { .length = 1 };
	unsigned int kept = 0, n, i;
	struct program *all;
	FILE *file;
	int ret;

	if (fuzz_open() || corpus_read(path_of("DAPX_TOP", CORPUS)) ||
	    fuzz_play(seconds, NULL, 0))
		return -1;
	fuzz_tell();
	all = corpus;
	n = corpus_length;
	corpus = calloc(CORPUS_MAX, sizeof(*corpus));
	corpus_length = 0;
	qsort(all, n, sizeof(*all), shorter);
	coverage_forget();
	for (i = 0; i < n; i++) {
		life.programs[0] = all[i];
		worker_start(worker, &life, false);
		while ((ret = worker_look(worker)) == 0)
			await_child(20);
		if (ret < 0 || kernel_log_has_fault())
			return finding("a fault while the corpus was cut down");
	}
	file = fopen(path_of("DAPX_OUT", "fuzz-corpus"), "w");
	if (!corpus || !file)
		return because("%s: %m", path_of("DAPX_OUT", "fuzz-corpus"));
	for (i = 0; i < corpus_length; i++, kept++)
		program_print(file, &corpus[i]);
	fclose(file);
	printf("# %u of %u programs reach %u edges: %s\n", kept, n, coverage_reached(),
	       path_of("DAPX_OUT", "fuzz-corpus"));
	return 0;
}

/* Not of the kselftest harness, which is in scenes.c already, and which ends tests by a clock. */
static int test(void)
{
	printf("TAP version 13\n1..1\n");
	if (play_as_test()) {
		printf("# %s\nnot ok 1 anything\n", why());
		return 1;
	}
	printf("ok 1 anything\n");
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int ret;

	/* As of the harness: what tests there are, and one of them. */
	if (!strcmp(what, "-l")) {
		printf("anything\n");
		return 0;
	}
	if (!strcmp(what, "-t") && argc > 2 && strcmp(argv[2], "anything")) {
		printf("TAP version 13\n1..0\n");
		return 0;
	}
	if (argc == 1 || !strcmp(what, "-t"))
		return test();
	if (!strcmp(what, "--repeat") && argc > 2) {
		ret = repeat(argv[2], argc > 3 ? atoi(argv[3]) : 60);
	} else if (!strcmp(what, "--keep")) {
		ret = keep(argc > 2 ? atoi(argv[2]) : 60);
	} else {
		fprintf(stderr, "usage: fuzz [--repeat FILE [SECONDS] | --keep [SECONDS]]\n");
		return 2;
	}
	printf("# %s\n", ret ? why() : "no finding");
	return ret ? 1 : 0;
}
