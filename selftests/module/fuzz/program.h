/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program says what a fuzzed process does, as data: a list of operations of 8 bytes each. Any
 * bytes are a program, so that programs can be kept, mutated, cut down and written to a file.
 *
 * In a file an operation is a line that begins with its 16 hexadecimal digits; the words after
 * them are for the reader. An empty line ends a program. Lines without digits are comments.
 */
#ifndef DAPX_FUZZ_PROGRAM_H
#define DAPX_FUZZ_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* In the kernel's log, a line has several operations after one of these, which are equally long. */
#define PROGRAM_BEGINS "dapx-fuzz: "
#define PROGRAM_GOES_ON "dapx-fuzz+ "

#define PROGRAM_MAX 48
#define PROGRAM_THREADS 3

struct op {
	uint8_t kind;
	uint8_t who;			/* op_thread(), op_side(), op_times() */
	uint8_t arg[6];
};

struct program {
	unsigned int length;
	struct op ops[PROGRAM_MAX];
};

struct actor;

struct op_kind {
	const char *name;
	void (*run)(struct actor *me, const uint8_t *arg);
	const char *args;		/* their names, with blanks in between */
	unsigned int weight;
};

enum {
#define OP(name, ...) OP_##name,
#include "ops_list.h"
#undef OP
	NUM_OPS,
};

extern const struct op_kind op_kinds[NUM_OPS];

unsigned int op_kind(const struct op *op);
unsigned int op_thread(const struct op *op);
unsigned int op_side(const struct op *op);
unsigned int op_times(const struct op *op);

bool program_has(const struct program *program, unsigned int kind);
/*
 * From here on, new operations are of some kinds only, half of the time: what would undo the
 * work of others is then seldom there, and what has to come together comes more often.
 */
void program_leave_out(void);
void program_make(struct program *program);
/* Some of it is taken from @other. */
void program_mutate(struct program *program, const struct program *other);
void program_print(FILE *file, const struct program *program);
/* Reads the next program of the file; false if there is none. */
bool program_read(FILE *file, struct program *program);

#endif /* DAPX_FUZZ_PROGRAM_H */
