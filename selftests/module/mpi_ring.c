// SPDX-License-Identifier: GPL-2.0
/* Each rank sends to the next one, messages of many sizes, and puts to its window; all add up. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_SIZE (1024 * 1024)

static unsigned char byte_of(int rank, int size, int i)
{
	return 31 * rank + size + i;
}

static int send_around(int rank, int ranks, int size)
{
	int from = (rank + ranks - 1) % ranks, to = (rank + 1) % ranks, wrong = 0;
	static unsigned char out[MAX_SIZE], in[MAX_SIZE];

	for (int i = 0; i < size; i++)
		out[i] = byte_of(rank, size, i);
	MPI_Sendrecv(out, size, MPI_BYTE, to, 1, in, size, MPI_BYTE, from, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (int i = 0; i < size; i++)
		wrong += in[i] != byte_of(from, size, i);
	return wrong;
}

static int put_around(int rank, int ranks)
{
	int from = (rank + ranks - 1) % ranks, to = (rank + 1) % ranks, wrong, *memory;
	MPI_Win window;

	MPI_Win_allocate(sizeof(*memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
	*memory = -1;
	MPI_Win_fence(0, window);
	MPI_Put(&rank, 1, MPI_INT, to, 0, 1, MPI_INT, window);
	MPI_Win_fence(0, window);
	wrong = *memory != from;
	MPI_Win_free(&window);
	return wrong;
}

int main(int argc, char **argv)
{
	int rank, ranks, sum, wrong = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int size = 1; size <= MAX_SIZE; size *= 4)
		wrong += send_around(rank, ranks, size);
	wrong += put_around(rank, ranks);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	wrong += sum != ranks * (ranks - 1) / 2;
	MPI_Finalize();
	printf("rank %d of %d: %d wrong\n", rank, ranks, wrong);
	return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
