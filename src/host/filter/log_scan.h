/* SPDX-License-Identifier: MIT */
/*
 * Finds the numbers in the lines of a log that are addresses, and what its formats say of each.
 * Reads no file.
 */
#ifndef FATHOM_FILTER_SCAN_H
#define FATHOM_FILTER_SCAN_H

#include "fathom/filter.h"
#include "host/base/array.h"
#include "host/base/key_map.h"
#include "host/base/memory.h"
#include "host/filter/log_line.h"
#include "safe/base/bytes.h"

/* Memory of a module: [start, end). */
struct fathom_log_place {
	uint64_t start;
	uint64_t end;
	uint64_t raised;     /* added to an address there, modulo 2^64: its place in the file */
	bool is_file_offset; /* that place is an offset; else it is stated */
	struct fathom_str module;
	struct fathom_str build_id; /* hexadecimal; size 0: not told */
};

/* A line that tells a place, as those of maps do. */
struct fathom_log_fact {
	struct fathom_log_place place;
	const char *line_start;
	const char *line_end;
	uint64_t process; /* fathom_log_process() of its line */
};

/* An address as the log has it. Texts point into the log. */
struct fathom_log_number {
	const char *format;
	struct fathom_str module;   /* its path or name; no data: that of the target */
	struct fathom_str build_id; /* of the module, hexadecimal; no data: not in the log */
	struct fathom_str from;     /* the only module that can place it; no data: any */
	struct fathom_str symbol;   /* that the number counts from; no data: none */
	struct fathom_str code;     /* bytes there ("Code:"), which are all the line has; or none */
	uint64_t value;
	uint64_t raised; /* added to value, modulo 2^64, before its base */
	uint64_t live;   /* the same place in memory, which its line has, too; 0: it has none */
	uint64_t mapping_size; /* of FATHOM_LOG_CODE_MAPPING: bytes of that */
	uint64_t symbol_size;  /* of symbol; 0: the log does not tell */
	const char *at;        /* its first byte */
	size_t size;
	const char *line_start;
	const char *line_end;
	uint64_t line;
	uint64_t process;    /* fathom_log_process() of its line */
	size_t counter;      /* of code: the number of its program counter; SIZE_MAX: earlier */
	uint32_t frame;      /* its number in a stack, from 1; 0: the log does not tell */
	uint8_t kind;        /* enum fathom_log_kind */
	uint8_t base;        /* enum fathom_log_base */
	bool is_doubtful;    /* a return address, or lowered already: the file's code tells */
	bool is_file_offset; /* with raised, the value is an offset in the file */
	bool is_any;         /* of no format: it counts only where it is in a module */
	bool is_frame;       /* of a stack of which nothing tells where its modules are */
	bool is_first;       /* the first frame of such a stack */
	bool is_tried;       /* a guess was tried that it was part of */
	bool is_guessed;     /* its place is a guess that nothing else explains */
	bool is_counter;     /* the log says that it is the program counter: exact */
	bool is_misplaced;   /* its stack shows that the module is not there */
	bool is_placed;      /* other lines told its module */
	bool is_refuted;     /* bytes of code in its report are those of another file */
};

/* The last program counter, whose bytes of code a later line may have. */
struct fathom_log_counter {
	struct fathom_log_number number; /* without a base to count from, it is nowhere known */
	uint64_t line;                   /* its, from 0 */
	size_t index;                    /* in numbers; SIZE_MAX: of lines that were read before */
	uint32_t n_open;                 /* counters whose code is still to come */
	bool is_known;                   /* its line tells where it is */
	bool is_mixed;                   /* several were open: whose code a line has is not clear */
	bool is_kept;                    /* its texts are in counter_texts */
};

/* The build-id of a module, which its log tells elsewhere than beside its addresses. */
struct fathom_log_build_id {
	struct fathom_str name;
	struct fathom_str id; /* hexadecimal; size 0: it has none */
};

/* A module of LLVM's markup. */
struct fathom_log_markup_module {
	struct fathom_str name;
	struct fathom_str build_id;
	uint64_t id;
};

/* A mapping of one: @size bytes at @start, of which the file states that they are at @stated. */
struct fathom_log_markup_mmap {
	uint64_t start;
	uint64_t size;
	uint64_t stated;
	size_t module; /* in modules; SIZE_MAX: in none that is known */
};

/* Processes whose lines may be mixed. */
#define FATHOM_LOG_PROCESSES 16

/* A process of LLVM's markup. */
struct fathom_log_markup {
	uint64_t process; /* fathom_log_process() of its lines */
	struct {
		FATHOM_ARRAY_OF(struct fathom_log_markup_module);
	} modules;
	struct {
		FATHOM_ARRAY_OF(struct fathom_log_markup_mmap);
	} mmaps;
	struct fathom_arena texts;
	size_t n_texts;
	bool is_full; /* some was left out: what is there may have been replaced */
};

/* The state of reading one log. All zero, nothing was read. */
struct fathom_log_scan {
	/* Of the lines that are being read. */
	struct {
		FATHOM_ARRAY_OF(struct fathom_log_number);
	} numbers;
	struct {
		FATHOM_ARRAY_OF(struct fathom_log_fact);
	} facts;
	uint64_t line;
	const char *text;
	const char *line_start;
	const char *line_end;
	const char *process_line; /* the start of the line that process is of; NULL: of none */
	uint64_t process;
	bool failed; /* without memory */
	/* From earlier lines. */
	struct {
		FATHOM_ARRAY_OF(struct fathom_log_build_id);
	} build_ids;
	struct fathom_key_map build_id_numbers; /* in that, by the hash of a name: the latest */
	struct fathom_arena build_id_texts;
	struct fathom_str path; /* that the line of a frame ended with; no data: none */
	char *kept_path;        /* it, if it is of lines that were read before */
	char *former_path;      /* the one before, which numbers may point to */
	struct fathom_log_counter counter;
	struct fathom_arena counter_texts;        /* of counter */
	struct fathom_arena former_counter_texts; /* of the one before, which numbers point to */
	uint64_t perf_line;    /* the line after the last frame of perf's, from 0 */
	uint64_t go_signal_pc; /* where the last signal of Go's was */
	uint64_t hotspot_line; /* of the first frame of HotSpot's list, from 1; 0: none */
	struct fathom_log_markup markups[FATHOM_LOG_PROCESSES];
	size_t n_markups;
	size_t last_markup;           /* the one that was begun last */
	uint32_t frame_after_handler; /* gdb's frame of this number, if it is next, is exact; 0:
					 none */
	bool is_of_signal;            /* the next first frame of a sanitizer is the signal's */
};

/* Finds the numbers of @size bytes at @text, whole lines, in place of those found before. */
fathom_err fathom_log_scan_lines(struct fathom_log_scan *s, const char *text, size_t size,
				 struct fathom_errinfo *reterr);
void fathom_log_scan_deinit(struct fathom_log_scan *s);

/* Returns fathom_line_process() of the line that is being read, which is searched once. */
uint64_t fathom_log_process(struct fathom_log_scan *s);

/*
 * Adds @number, whose line is the one that is being read: format, place, line and
 * process are filled in.
 */
void fathom_log_add(struct fathom_log_scan *s, const struct fathom_log_number *number);

/*
 * Notes that the line that is being read has a program counter: @number, the last one that was
 * added; NULL: the line does not tell where it is.
 */
void fathom_log_note_counter(struct fathom_log_scan *s, const struct fathom_log_number *number);

/* Adds that the line that is being read tells @place. */
void fathom_log_add_fact(struct fathom_log_scan *s, const struct fathom_log_place *place);

/* Returns the text from @from to @to. */
static inline struct fathom_str fathom_log_text(const char *from, const char *to)
{
	return (struct fathom_str){ from, (uint32_t)(to - from) };
}

/* Returns the part of @path after its last slash. */
static inline struct fathom_str fathom_log_last_part(struct fathom_str path)
{
	const char *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;

	return slash ? fathom_log_text(slash + 1, path.data + path.size) : path;
}

#endif
