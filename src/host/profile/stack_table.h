/* SPDX-License-Identifier: MIT */
/*
 * The cgroups, modules, symbols, locations and nodes of a profile under construction: each is
 * written when it is first seen, and has a number from then on.
 */
#ifndef FATHOM_PROFILE_STACK_TABLE_H
#define FATHOM_PROFILE_STACK_TABLE_H

#include "host/base/key_map.h"
#include "host/base/name_table.h"
#include "host/profile/samples_writer.h"

/* No number: of no cgroup, module, symbol or location, or without memory. */
#define FATHOM_TABLE_NONE UINT32_MAX

struct fathom_stack_table {
	struct fathom_profile_writer *writer;
	/* Texts that spell them, by the numbers that they have in the profile. */
	struct fathom_name_table cgroups;
	struct fathom_name_table modules;
	struct fathom_name_table symbols;
	struct fathom_bytes_array spelled; /* the text under construction */
	struct fathom_key_map locations;   /* by hash of all that they are */
	struct fathom_key_map nodes;       /* by caller and location */
	struct {
		FATHOM_ARRAY_OF(struct fathom_profile_location);
	} known_locations;
	struct fathom_u32_array symbol_of; /* of each location */
};

/* These return a number, FATHOM_TABLE_NONE without memory, and keep nothing that they are given. */
uint32_t fathom_table_cgroup(struct fathom_stack_table *t, const char *path);
uint32_t fathom_table_module(struct fathom_stack_table *t, const struct fathom_profile_module *m);
uint32_t fathom_table_symbol(struct fathom_stack_table *t, const struct fathom_profile_symbol *s);
/* @l: all but the answer; @symbol: number, or FATHOM_TABLE_NONE. */
uint32_t fathom_table_location(struct fathom_stack_table *t,
			       const struct fathom_profile_location *l, uint32_t symbol);
/* @caller: node, or 0. Returns 0 without memory. */
uint32_t fathom_table_node(struct fathom_stack_table *t, uint32_t caller, uint32_t location);

void fathom_stack_table_deinit(struct fathom_stack_table *t);

#endif
