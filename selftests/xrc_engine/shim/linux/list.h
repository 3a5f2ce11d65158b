/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rings of list_heads: the head's next is the first entry, its prev the last. */
#ifndef _DAPX_SHIM_LIST_H
#define _DAPX_SHIM_LIST_H

#include <linux/types.h>

struct list_head {
	struct list_head *next;
	struct list_head *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline bool list_is_last(const struct list_head *entry, const struct list_head *head)
{
	return head->prev == entry;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	struct list_head *last = head->prev;

	entry->next = head;
	entry->prev = last;
	last->next = entry;
	head->prev = entry;
}

static inline void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	INIT_LIST_HEAD(entry);
}

#define list_entry(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))
#define list_first_entry_or_null(head, type, member) \
	(list_empty(head) ? NULL : list_entry((head)->next, type, member))
#define list_next_entry(entry, member) \
	list_entry((entry)->member.next, __typeof__(*(entry)), member)
#define list_for_each_entry(entry, head, member)				\
	for ((entry) = list_entry((head)->next, __typeof__(*(entry)), member);	\
	     &(entry)->member != (head);					\
	     (entry) = list_next_entry(entry, member))

#endif
