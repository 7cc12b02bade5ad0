/* SPDX-License-Identifier: MIT */
/* Writes profile files: samples_format.h. */
#ifndef FATHOM_PROFILE_SAMPLES_WRITER_H
#define FATHOM_PROFILE_SAMPLES_WRITER_H

#include "fathom/profile.h"
#include "host/base/array.h"
#include "host/profile/record_observer.h"
#include "safe/base/bytes.h"

struct fathom_profile_writer {
	fathom_profile_write_fn write;
	void *data;
	uint64_t bytes; /* of the file so far */
	uint64_t ns;    /* of the last sample */
	uint32_t n_cgroups;
	uint32_t n_threads;
	uint32_t n_modules;
	uint32_t n_symbols;
	uint32_t n_locations;
	uint32_t n_nodes;
	bool no_memory;
	bool has_failed;                         /* write() has; errno says why */
	int number;                              /* that errno */
	struct fathom_record_observer *observer; /* is told what is written; NULL: nobody is */
	struct fathom_bytes_array record;        /* that is being made */
	struct fathom_bytes_array out;           /* records that are not passed on yet */
};

/* A name that cannot be found later. */
struct fathom_profile_symbol {
	struct fathom_str name;
	struct fathom_str linkage_name; /* or nothing */
	struct fathom_str file;         /* or nothing */
	uint32_t line;
	uint32_t column; /* 0: not known */
	uint32_t outer;  /* number + 1 of the symbol that it is inlined into; 0: none */
	uint8_t source;  /* enum fathom_source */
};

/* Begins a file that is passed to @write, which may be NULL. @w is all zero but its observer. */
void fathom_profile_writer_begin(struct fathom_profile_writer *w, fathom_profile_write_fn write,
				 void *data);
void fathom_profile_write_about(struct fathom_profile_writer *w, const char *key, const char *text);
/* These return the number of what they define. */
uint32_t fathom_profile_write_cgroup(struct fathom_profile_writer *w, const char *path);
/* @cgroup: number; UINT32_MAX: not known. The texts of @t but its name are not written. */
uint32_t fathom_profile_write_thread(struct fathom_profile_writer *w,
				     const struct fathom_profile_thread *t, uint32_t cgroup);
uint32_t fathom_profile_write_module(struct fathom_profile_writer *w,
				     const struct fathom_profile_module *m);
uint32_t fathom_profile_write_symbol(struct fathom_profile_writer *w,
				     const struct fathom_profile_symbol *s);
/* @symbol: number; UINT32_MAX: none. Of @l all but the answer is written. */
uint32_t fathom_profile_write_location(struct fathom_profile_writer *w,
				       const struct fathom_profile_location *l, uint32_t symbol);
uint32_t fathom_profile_write_node(struct fathom_profile_writer *w,
				   const struct fathom_profile_node *n);
void fathom_profile_write_sample(struct fathom_profile_writer *w,
				 const struct fathom_profile_sample *s);
void fathom_profile_write_lost(struct fathom_profile_writer *w, uint64_t ns, uint64_t n);
void fathom_profile_write_throttled(struct fathom_profile_writer *w, uint64_t ns);
void fathom_profile_write_end(struct fathom_profile_writer *w, uint64_t ns);
/* Passes on what was written. False if that fails or has failed, or without memory. */
bool fathom_profile_writer_flush(struct fathom_profile_writer *w);
void fathom_profile_writer_deinit(struct fathom_profile_writer *w);

#endif
