/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Annotations of profiles: the instructions and source lines of functions, with weights.
 *
 * A function is what a report by function has a row for: a name within a module. A function that
 * the compiler has inlined is one, too; its code is part of the code of other functions. Weights
 * are those of the report: the sum of the self weights of a function's instructions, and what is
 * elsewhere, is the self weight of its row.
 *
 * Instructions are those of the file with the recorded build-id only. Source lines are those that
 * the debug information names; their texts are found as <fathom/source.h> finds them.
 */
#ifndef FATHOM_PROFILE_ANNOTATE_H
#define FATHOM_PROFILE_ANNOTATE_H

#include <fathom/error.h>
#include <fathom/profile_report.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fathom_profile;

/** An annotation. Opaque. */
struct fathom_annotation;

/** Bits of fathom_annotation_options.flags. */
enum fathom_annotate_flag {
	FATHOM_ANNOTATE_INTEL = 1u << 0,           /**< Intel syntax on x86; else AT&T */
	FATHOM_ANNOTATE_NO_DEMANGLE = 1u << 1,     /**< instructions have linkage names */
	FATHOM_ANNOTATE_NO_INSTRUCTIONS = 1u << 2, /**< lines only */
	FATHOM_ANNOTATE_NO_SOURCE = 1u << 3        /**< no texts of lines */
};

/** Options of an annotation; as struct fathom_options. */
struct fathom_annotation_options {
	size_t size;
	uint32_t flags; /**< FATHOM_ANNOTATE_ bits */
	uint32_t limit; /**< annotate so many functions, the heaviest; default: 100 */
	/** Functions, a query as of fathom_find(); NULL: all. */
	const char *query;
	/**
	 * Filters, or NULL; key, shape and of have to be 0. Functions whose self weight is below
	 * least_share of all are left out; fathom_annotation_left_out() does not count them.
	 */
	const struct fathom_report_options *filters;
	/** Directories that are searched for sources first, NULL-terminated; NULL: none. */
	const char *const *source_dirs;
	/** As of fathom_profile_resolve_options. */
	const char *sysroot;
	const char *const *debug_dirs;
	uint64_t reserved[4];
};

/** Value of an index that refers to nothing. */
#define FATHOM_ANNOTATED_NONE UINT32_MAX

/** Weights of an instruction, a line or a function. */
struct fathom_annotated_weight {
	/** of samples that were here, in the function itself */
	uint64_t self;
	/** of samples that were here, in functions that are inlined into it */
	uint64_t inlined;
	/** of samples whose stack has this place: both, and those in what was called from here */
	uint64_t total;
	uint64_t self_samples;    /**< whose weight is self */
	uint64_t inlined_samples; /**< whose weight is inlined */
	uint64_t total_samples;   /**< whose weight is total */
};

/** A source file. */
struct fathom_annotated_file {
	const char *path;  /**< as the compiler wrote it; never NULL */
	const char *found; /**< the file that was read; NULL: none, or the text is embedded */
	const char *why;   /**< why there is no text; NULL: there is, or none was asked for */
	uint8_t origin;    /**< enum fathom_text_origin of <fathom/source.h> */
	uint8_t is_proven; /**< 1: it is what was compiled, by its MD5 */
	uint8_t is_newer;  /**< 1: not proven, and changed after the module was made */
	uint8_t reserved[5];
};

/** A source line of a function. */
struct fathom_annotated_line {
	const struct fathom_annotated_file *file;
	/**
	 * NULL: a line of the function itself. Else the name of a function that is inlined into it,
	 * whose line it is: weights are of samples there.
	 */
	const char *function;
	const char *text;   /**< of the line, without its end; NULL: see file->why */
	uint32_t text_size; /**< bytes; longer lines are cut to 4,096 */
	uint32_t line;      /**< its number, from 1 */
	/** 1: there are instructions of it, or samples; 0: it stands between lines that have */
	uint8_t has_code;
	uint8_t reserved[7];
	/** Of a line of the function itself, all; of others, self and total are 0. */
	struct fathom_annotated_weight weight;
};

/** A piece of code: a function as it is linked. */
struct fathom_annotated_code {
	const char *name;   /**< demangled, of the function as it is linked; NULL: not known */
	const char *module; /**< path */
	uint64_t start;     /**< as the file states it */
	uint64_t size;      /**< bytes */
	const char *why; /**< why there are no instructions; NULL: there are, or none are wanted */
	uint32_t first;  /**< index of its first instruction */
	uint32_t n;      /**< instructions */
	/** 1: the function is inlined here; 0: it is the linked function */
	uint8_t is_inlined_here;
	uint8_t reserved[3];
	uint32_t module_index;                    /**< of fathom_profile_modules() */
	struct fathom_annotated_weight elsewhere; /**< samples between the instructions; no total */
};

/** An instruction. */
struct fathom_annotated_instruction {
	uint64_t address; /**< as the file states it */
	const uint8_t *bytes;
	const char *text; /**< as of <fathom/disasm.h> */
	uint64_t target;  /**< where it jumps to or calls; 0: not known */
	uint32_t jump; /**< index of the instruction that it jumps to, in the same code; or NONE */
	/** index of the function's own line, of inlined code that of the call; or NONE */
	uint32_t line;
	/** index of the line of the function inlined here that it is of; NONE: it is of none */
	uint32_t inlined_line;
	uint32_t code;      /**< index of its piece of code */
	uint8_t size;       /**< bytes */
	uint8_t flow;       /**< enum fathom_flow of <fathom/disasm.h> */
	uint8_t is_outside; /**< 1: of a function that this one is inlined into */
	uint8_t reserved[5];
	struct fathom_annotated_weight weight;
};

/** A function with its code and lines. */
struct fathom_annotated_function {
	const char *name;         /**< never NULL */
	const char *linkage_name; /**< NULL where only a plain name is known */
	const char *module;       /**< path; NULL: none */
	/** Why nothing has instructions, of the whole function; NULL: see codes. */
	const char *why;
	const struct fathom_annotated_code *codes; /**< by address */
	size_t n_codes;
	const struct fathom_annotated_instruction *instructions; /**< of all codes */
	size_t n_instructions;
	/** Lines of the function itself by file and number, then those of inlined functions. */
	const struct fathom_annotated_line *lines;
	size_t n_lines;
	struct fathom_annotated_weight weight;    /**< self and total: as its row has them */
	struct fathom_annotated_weight elsewhere; /**< at none of the instructions; no total */
	struct fathom_annotated_weight no_line;   /**< at places without a line; no total */
};

/**
 * Annotates functions of @profile. Names are those that it has: fathom_profile_resolve() comes
 * first. @options may be NULL.
 *
 * A sample counts for the instruction that holds the pc; of callers, for their call. With the
 * filters only and except, what is passed over counts for its callers, as in reports.
 *
 * Safety: mt-safe
 * Memory: *@ret_annotation is the caller's, to be freed with fathom_annotation_free(); it does not
 *	need @profile any more
 * Returns: FATHOM_OK, also if instructions or texts are missing, which say why; the errors of
 *	fathom_report_create(), FATHOM_E_NOT_FOUND also if the profile has no function of the query
 */
FATHOM_API fathom_err fathom_annotation_create(const struct fathom_profile *profile,
					       const struct fathom_annotation_options *options,
					       struct fathom_annotation **ret_annotation,
					       struct fathom_errinfo *reterr);

/**
 * Safety: mt-safe per object
 * Memory: frees @annotation, which may be NULL, and all that it has returned
 * Returns: nothing
 */
FATHOM_API void fathom_annotation_free(struct fathom_annotation *annotation);

/**
 * Returns the functions that have a weight: by self weight, then by total weight, the highest
 * first, then by name.
 *
 * Safety: mt-safe
 * Memory: the result belongs to @annotation
 * Returns: *@ret_n functions
 */
FATHOM_API const struct fathom_annotated_function *fathom_annotation_functions(
	const struct fathom_annotation *annotation, size_t *ret_n);

/**
 * Returns how many functions were left out for fathom_annotation_options.limit.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: their number
 */
FATHOM_API size_t fathom_annotation_left_out(const struct fathom_annotation *annotation);

/**
 * Returns the sums of the samples that were asked for; shown is not set.
 *
 * Safety: mt-safe
 * Memory: the result belongs to @annotation
 * Returns: never NULL
 */
FATHOM_API const struct fathom_report_sums *fathom_annotation_get_sums(
	const struct fathom_annotation *annotation);

#ifdef __cplusplus
}
#endif

#endif
