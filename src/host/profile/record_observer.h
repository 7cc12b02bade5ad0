/* SPDX-License-Identifier: MIT */
/*
 * Passes samples to a caller while they are recorded: it keeps what samples refer to, by the
 * numbers that these have in the profile. All zero but sample and data, it knows nothing yet.
 */
#ifndef FATHOM_PROFILE_RECORD_OBSERVER_H
#define FATHOM_PROFILE_RECORD_OBSERVER_H

#include <stdbool.h>

#include "fathom/profile.h"
#include "host/base/array.h"
#include "host/base/key_map.h"
#include "host/base/name_table.h"

struct fathom_profile_symbol;

struct fathom_record_observed_module {
	struct fathom_profile_module m; /* frames refer to it; the build-id follows */
	uint8_t kind;                   /* of its frames: enum fathom_frame_kind */
};

struct fathom_record_observer {
	fathom_record_sample_fn sample;
	void *data;
	bool is_over; /* sample() wants no more */
	struct fathom_name_table texts;
	struct {
		FATHOM_ARRAY_OF(const char *);
	} cgroups;
	struct {
		FATHOM_ARRAY_OF(struct fathom_profile_thread);
	} threads;
	struct fathom_key_map by_pid; /* the first thread of a process, as it was named last */
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_observed_module *);
	} modules;
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_frame);
	} symbols; /* what frames have of them */
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_frame);
	} locations;
	struct {
		FATHOM_ARRAY_OF(struct fathom_profile_node);
	} nodes; /* from number 1 on */
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_frame);
	} frames; /* of the sample that is passed on */
};

/* These take what a profile defines, in its order, and keep copies. False without memory. */
bool fathom_record_observe_cgroup(struct fathom_record_observer *o, const char *path);
/* @cgroup: number; UINT32_MAX: not known. */
bool fathom_record_observe_thread(struct fathom_record_observer *o,
				  const struct fathom_profile_thread *t, uint32_t cgroup);
bool fathom_record_observe_module(struct fathom_record_observer *o,
				  const struct fathom_profile_module *m);
bool fathom_record_observe_symbol(struct fathom_record_observer *o,
				  const struct fathom_profile_symbol *s);
/* @symbol: number; UINT32_MAX: none. */
bool fathom_record_observe_location(struct fathom_record_observer *o,
				    const struct fathom_profile_location *l, uint32_t symbol);
bool fathom_record_observe_node(struct fathom_record_observer *o,
				const struct fathom_profile_node *n);
/* Passes @s on. */
bool fathom_record_observe_sample(struct fathom_record_observer *o,
				  const struct fathom_profile_sample *s);

void fathom_record_observer_deinit(struct fathom_record_observer *o);

#endif
