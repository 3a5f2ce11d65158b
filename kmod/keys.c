// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the keys that windows had recently, so that none is reused soon
 */
#include <linux/hashtable.h>
#include <linux/slab.h>

#include "memory.h"

/* The ABI promises that none of the last 65536 keys is reused. */
#define DAPX_KEYS_BITS 16

struct dapx_key {
	struct hlist_node node;
	u32 key;
};

struct dapx_keys {
	spinlock_t lock;		/* all below */
	u32 next;
	DECLARE_HASHTABLE(table, DAPX_KEYS_BITS);
	struct dapx_key last[1 << DAPX_KEYS_BITS];
};

struct dapx_keys *dapx_keys_create(void)
{
	struct dapx_keys *keys = kvzalloc(sizeof(*keys), GFP_KERNEL);

	if (!keys)
		return NULL;
	spin_lock_init(&keys->lock);
	hash_init(keys->table);
	return keys;
}

void dapx_keys_destroy(struct dapx_keys *keys)
{
	kvfree(keys);
}

static bool dapx_keys_find(struct dapx_keys *keys, u32 key)
{
	struct dapx_key *entry;

	hash_for_each_possible(keys->table, entry, node, key)
		if (entry->key == key)
			return true;
	return false;
}

/* Records the key in place of the oldest one. Returns false if it is already recorded. */
bool dapx_keys_take(struct dapx_keys *keys, u32 key)
{
	struct dapx_key *entry;
	bool fresh;

	spin_lock(&keys->lock);
	fresh = !dapx_keys_find(keys, key);
	if (fresh) {
		entry = &keys->last[keys->next++ % ARRAY_SIZE(keys->last)];
		hash_del(&entry->node);
		entry->key = key;
		hash_add(keys->table, &entry->node, key);
	}
	spin_unlock(&keys->lock);
	return fresh;
}

bool dapx_keys_used(struct dapx_keys *keys, u32 key)
{
	bool used;

	spin_lock(&keys->lock);
	used = dapx_keys_find(keys, key);
	spin_unlock(&keys->lock);
	return used;
}
