// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <string.h>

#include "../harness/dice.h"
#include "program.h"

#define DIGITS (2 * sizeof(struct op))
/* The bit of op->who for op_side(). */
#define SIDE 4

static bool one_in(unsigned int n)
{
	return dice() % n == 0;
}

unsigned int op_kind(const struct op *op)
{
	return op->kind % NUM_OPS;
}

unsigned int op_thread(const struct op *op)
{
	return (op->who & 3) % PROGRAM_THREADS;
}

unsigned int op_side(const struct op *op)
{
	return op->who >> 2 & 1;
}

unsigned int op_times(const struct op *op)
{
	return 1 << (op->who >> 4 & 7);
}

bool program_has(const struct program *program, unsigned int kind)
{
	unsigned int i;

	for (i = 0; i < program->length; i++)
		if (op_kind(&program->ops[i]) == kind)
			return true;
	return false;
}

/* ---- making and mutating ---- */

static bool left_out[NUM_OPS];

void program_leave_out(void)
{
	bool some = one_in(2);
	unsigned int kind;

	for (kind = 0; kind < NUM_OPS; kind++)
		left_out[kind] = some && one_in(2);
}

static unsigned int weight_of(unsigned int kind)
{
	return left_out[kind] ? 0 : op_kinds[kind].weight;
}

static unsigned int some_kind(void)
{
	unsigned int total = 0, kind;

	for (kind = 0; kind < NUM_OPS; kind++)
		total += weight_of(kind);
	if (!total)
		return 0;
	total = dice() % total;
	for (kind = 0; total >= weight_of(kind); kind++)
		total -= weight_of(kind);
	return kind;
}

/* Small numbers name objects: with few of them, several operations have the same one. */
static uint8_t some_byte(void)
{
	switch (dice() % 8) {
	case 0:
		return dice();
	case 1:
	case 2:
	case 3:
		return 0;
	default:
		return dice() % 8;
	}
}

static void op_make(struct op *op)
{
	unsigned int i;

	op->kind = some_kind();
	op->who = dice() % PROGRAM_THREADS | one_in(4) << 2;
	if (one_in(10))
		op->who |= dice() % 8 << 4;
	for (i = 0; i < sizeof(op->arg); i++)
		op->arg[i] = some_byte();
}

/* Makes room for @n operations at @at; those at the end fall off. */
static void program_open(struct program *program, unsigned int at, unsigned int n)
{
	unsigned int left = program->length - at;

	if (at + n + left > PROGRAM_MAX)
		left = at + n < PROGRAM_MAX ? PROGRAM_MAX - at - n : 0;
	memmove(&program->ops[at + n], &program->ops[at], left * sizeof(struct op));
	program->length = at + n + left;
}

static void program_remove(struct program *program, unsigned int at, unsigned int n)
{
	if (at + n > program->length)
		n = program->length - at;
	memmove(&program->ops[at], &program->ops[at + n],
		(program->length - at - n) * sizeof(struct op));
	program->length -= n;
}

static void program_insert_at(struct program *program, unsigned int at, const struct op *ops,
			      unsigned int n)
{
	if (at + n > PROGRAM_MAX)
		at = PROGRAM_MAX - n;
	if (at > program->length)
		at = program->length;
	program_open(program, at, n);
	memcpy(&program->ops[at], ops, n * sizeof(*ops));
}

static void program_insert(struct program *program, const struct op *ops, unsigned int n)
{
	program_insert_at(program, dice() % (program->length + 1), ops, n);
}

/* Some operations in a row once more, or twice: what happens again, before the first was seen? */
static void program_repeat(struct program *program)
{
	unsigned int at = dice() % program->length, n = 1 + dice() % 4, times = 1 + dice() % 2;
	struct op ops[4];

	if (n > program->length - at)
		n = program->length - at;
	memcpy(ops, &program->ops[at], n * sizeof(*ops));
	while (times--)
		program_insert_at(program, at + n, ops, n);
}

/* One of those of this kind; NULL: there is none. */
static const struct op *some_op(const struct program *program, unsigned int kind)
{
	const struct op *found = NULL;
	unsigned int n = 0, i;

	for (i = 0; i < program->length; i++)
		if (op_kind(&program->ops[i]) == kind && one_in(++n))
			found = &program->ops[i];
	return found;
}

/*
 * Two threads on one CPU: the idle one acts, and is interrupted by the other, which goes on as
 * soon as the kernel has taken something from a queue. If what the other does then sleeps, the
 * idle one would go on, unless a third thread has the CPU.
 */
static void program_insert_race(struct program *program)
{
	struct op race[12] = {};
	unsigned int i, n = 6 + dice() % 4;
	const struct op *taken;

	for (i = 0; i < n; i++) {
		op_make(&race[i]);
		/* Much of a race is what was done before, now by another thread. */
		if (program->length && one_in(2))
			race[i] = program->ops[dice() % program->length];
		race[i].who = (race[i].who & ~3) | (i == 2 || i == 4);
	}
	race[0].kind = OP_together;
	race[1].kind = OP_sched;
	race[1].arg[0] = 0;
	race[1].arg[1] = 0;
	race[2] = race[1];
	race[2].arg[0] = 1;
	race[2].who |= 1;
	race[3].kind = OP_until;
	/* Something must be taken from the queue that the others look at. */
	taken = some_op(program, OP_recv);
	if (taken && !one_in(4)) {
		race[4] = *taken;
		race[4].who = (taken->who & ~3) | 1;
		race[3].who = taken->who & SIDE;
		race[3].arg[0] = taken->arg[0];
		race[5].who = taken->who & SIDE;
	}
	/* What the other one works with is gone when it goes on. */
	if (one_in(2))
		race[5].kind = OP_free_all;
	if (one_in(2)) {
		memmove(&race[6], &race[3], (n - 3) * sizeof(*race));
		race[3] = race[1];
		race[4] = race[6];
		race[5] = (struct op) { .kind = OP_burn, .arg[0] = dice() };
		for (i = 3; i <= 5; i++)
			race[i].who = (race[i].who & ~3) | 2;
		n += 3;
	}
	program_insert(program, race, n);
}

void program_make(struct program *program)
{
	unsigned int i;

	program->length = 4 + dice() % 24;
	for (i = 0; i < program->length; i++) {
		op_make(&program->ops[i]);
		/* Threads need objects to work with. */
		if (i < program->length / 2)
			program->ops[i].who &= ~3;
	}
	if (one_in(4))
		program_insert_race(program);
}

static void program_splice(struct program *program, const struct program *other)
{
	unsigned int at, n;

	if (!other->length)
		return;
	at = dice() % other->length;
	n = 1 + dice() % (other->length - at);
	program_insert(program, &other->ops[at], n);
}

void program_mutate(struct program *program, const struct program *other)
{
	unsigned int changes = 1 + dice() % 5;
	struct op made;

	while (changes--) {
		struct op *op = program->length ?
			&program->ops[dice() % program->length] : NULL;

		switch (op ? dice() % 13 : 0) {
		case 0:
		case 1:
		case 2:
			op_make(&made);
			program_insert(program, &made, 1);
			break;
		case 3:
			program_remove(program, op - program->ops, 1 + dice() % 3);
			break;
		case 4:
		case 5:
		case 6:
			op->arg[dice() % sizeof(op->arg)] = some_byte();
			break;
		case 7:
			op->who ^= 1 << dice() % 3;
			break;
		case 8:
			op->who ^= 1 << (4 + dice() % 3);
			break;
		case 9:
			made = *op;
			program_insert(program, &made, 1);
			break;
		case 10:
			program_splice(program, other);
			break;
		case 11:
			program_repeat(program);
			break;
		default:
			program_insert_race(program);
			break;
		}
	}
}

/* ---- files ---- */

static void op_print(FILE *file, const struct op *op)
{
	const struct op_kind *kind = &op_kinds[op_kind(op)];
	const char *name = kind->args;
	unsigned int i;

	for (i = 0; i < sizeof(*op); i++)
		fprintf(file, "%02x", ((const uint8_t *)op)[i]);
	fprintf(file, "  %u: %c.%s(", op_thread(op), 'a' + op_side(op), kind->name);
	for (i = 0; *name && i < sizeof(op->arg); i++) {
		int length = strcspn(name, " ");

		fprintf(file, "%s%.*s %u", i ? ", " : "", length, name, op->arg[i]);
		name += length;
		name += *name == ' ';
	}
	fprintf(file, ")");
	if (op_times(op) > 1)
		fprintf(file, " %u times", op_times(op));
	fprintf(file, "\n");
}

void program_print(FILE *file, const struct program *program)
{
	unsigned int i;

	for (i = 0; i < program->length; i++)
		op_print(file, &program->ops[i]);
	fprintf(file, "\n");
}

static bool op_read(const char *line, struct op *op)
{
	unsigned int i, byte;

	for (i = 0; i < DIGITS; i++)
		if (!isxdigit(line[i]))
			return false;
	for (i = 0; i < sizeof(*op); i++) {
		if (sscanf(line + 2 * i, "%2x", &byte) != 1)
			return false;
		((uint8_t *)op)[i] = byte;
	}
	return true;
}

bool program_read(FILE *file, struct program *program)
{
	char line[1024], *at;
	long begin;

	program->length = 0;
	while (begin = ftell(file), fgets(line, sizeof(line), file)) {
		if (line[0] == '\n' && program->length)
			return true;
		at = strstr(line, PROGRAM_BEGINS);
		if (at && program->length) {
			fseek(file, begin, SEEK_SET);
			return true;
		}
		if (!at)
			at = strstr(line, PROGRAM_GOES_ON);
		at = at ? at + strlen(PROGRAM_BEGINS) : line;
		while (program->length < PROGRAM_MAX &&
		       op_read(at, &program->ops[program->length])) {
			program->length++;
			at += DIGITS;
		}
	}
	return program->length;
}
