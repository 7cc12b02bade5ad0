/* SPDX-License-Identifier: MIT */
/*
 * Files of perf record (Linux, tools/perf/Documentation/perf.data-file-format.txt; records of the
 * kernel: linux/perf_event.h).
 *
 * A file has a header, the events with their numbers, records, and sections of facts. In pipe mode
 * (perf record -o -) all of these are records. Records of different processors are not in the order
 * of time: an index of those that matter is sorted.
 */
#ifndef FATHOM_EXCHANGE_PERF_FILE_H
#define FATHOM_EXCHANGE_PERF_FILE_H

#include "host/base/key_map.h"
#include "host/base/name_table.h"
#include "host/exchange/importing.h"
#include "host/profile/perf_event.h"
#include "safe/base/cursor.h"

/* An event that was sampled: of struct perf_event_attr what matters. */
struct fathom_perf_attr {
	uint32_t type;
	uint64_t config;
	uint64_t sample_type;
	uint64_t period; /* or the frequency */
	uint64_t read_format;
	uint64_t branches;  /* branch_sample_type */
	uint64_t registers; /* sample_regs_user */
	uint64_t flags;     /* the bits after read_format */
	uint32_t clock;     /* of its times, if FATHOM_PERF_ATTR_CLOCK is set: clockid_t */
	uint16_t max_stack; /* addresses of a call chain; 0: as the kernel is set */
	struct fathom_str name;
	uint64_t n_samples;
};

/* A record that begins what another thread of perf has written: of fathom (perf_directory.h). */
#define FATHOM_PERF_PART 0x66617468u

#define FATHOM_PERF_ATTR_EXCLUDE_KERNEL (UINT64_C(1) << 5)
#define FATHOM_PERF_ATTR_FREQUENCY      (UINT64_C(1) << 10)
#define FATHOM_PERF_ATTR_ID_ALL         (UINT64_C(1) << 18)
#define FATHOM_PERF_ATTR_CLOCK          (UINT64_C(1) << 25)
/* Call chains do not have the program's part. */
#define FATHOM_PERF_ATTR_EXCLUDE_USER_CHAIN (UINT64_C(1) << 22)

/* A build-id, of the file that has the same number among the paths. */
struct fathom_perf_build_id {
	const uint8_t *data;
	uint8_t size;
};

struct fathom_perf_file {
	struct fathom_import *import;
	struct {
		FATHOM_ARRAY_OF(struct fathom_perf_attr);
	} attrs;
	struct fathom_key_map by_id;    /* numbers of events by their ids */
	uint64_t id_bytes;              /* of all these ids in the file */
	struct fathom_name_table paths; /* of files with build-ids */
	struct {
		FATHOM_ARRAY_OF(struct fathom_perf_build_id);
	} build_ids;
	struct fathom_str host;
	struct fathom_str kernel; /* its release */
	struct fathom_str machine;
	struct fathom_bytes_array command;
	uint64_t wall_ns; /* since 1970, when perf's clock had clock_ns; 0: not known */
	uint64_t clock_ns;
	bool is_cut;                     /* the file ends before the recording did */
	struct fathom_keyed_array index; /* by time, then in the order of the file */
	struct fathom_sink packed;       /* compressed records */
	struct fathom_u64_array parts;   /* where those of another thread of perf begin */
	struct fathom_sink unpacked;     /* records that were compressed */
	uint64_t counted;                /* bytes of them that count against the budget */
	uint64_t n_unknown;              /* samples of no event */
};

/* A sample, beyond what struct fathom_perf_record has. */
struct fathom_perf_more {
	uint32_t attr; /* number of its event */
	uint64_t ip;
	const uint8_t *user; /* n_user addresses of the call chain, the innermost first */
	uint64_t n_user;
	bool is_part; /* more follows, of a kind that is not known */
};

/* Reads what the file says of itself, and makes the index. @p is all zero but for the import. */
fathom_err fathom_perf_file_open(struct fathom_perf_file *p, struct fathom_errinfo *reterr);
void fathom_perf_file_close(struct fathom_perf_file *p);

/*
 * Decodes record number @i of the index; returns false if it makes no sense, or its event is not
 * known. *@more is set of samples.
 */
bool fathom_perf_file_record(struct fathom_perf_file *p, size_t i, struct fathom_perf_record *ret,
			     struct fathom_perf_more *more);

/* Returns the bytes of record number @i of the index, from its header on. */
struct fathom_bytes fathom_perf_file_bytes(const struct fathom_perf_file *p, size_t i);

/* Returns the build-id that the file has for the file @path; empty: it has none. */
struct fathom_bytes fathom_perf_file_build_id(struct fathom_perf_file *p, const char *path);

#endif
