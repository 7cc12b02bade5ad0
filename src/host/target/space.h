/* SPDX-License-Identifier: MIT */
/*
 * A space: the addresses of something that runs or ran, a process for one. Which file, or what
 * stands for one, an address is in.
 *
 * Each batch has one map, and is answered from it; what it says was true at one moment. That of
 * what was stored is read once, and what was found out about it is kept between batches. Files stay
 * open between batches, as modules, so that they are read once; a module that nothing maps any more
 * is closed.
 */
#ifndef FATHOM_TARGET_SPACE_H
#define FATHOM_TARGET_SPACE_H

#include <pthread.h>
#include <stdatomic.h>

#include "fathom/answer.h"
#include "host/base/context.h"
#include "host/base/notes.h"
#include "host/target/maps.h"

struct fathom_answers;
struct fathom_batch_options;
struct fathom_file_id;
struct fathom_symbol_hit;
struct fathom_module;
struct fathom_space;
struct fathom_space_batch;
struct fathom_jit;

/* Code that a program has made itself: where it is, and its symbol, which may start elsewhere. */
struct fathom_jit_code {
	uint64_t start; /* avma */
	uint64_t end;
	const struct fathom_symbol_hit *symbol;
};

typedef bool (*fathom_code_fn)(const struct fathom_jit_code *code, void *data);

/* What a snapshot keeps of a space. */
struct fathom_space_facts {
	uint64_t entry;   /* avma where the program started, AT_ENTRY; 0: not known */
	int pid;          /* of what was stored, as the process knew itself; 0: not known */
	char command[16]; /* the program's name, cut to fit; "" */
	int64_t uid;      /* of a core: the user that it ran as; -1: not known */
	int64_t ended;    /* of a core: when it was written, seconds since 1970; 0: not known */
};

/* What is different in each kind of space. All may be called by several threads at once. */
struct fathom_space_ops {
	/* Reads the map as it is, or was; one without a mapping is an error. */
	fathom_err (*read_maps)(const struct fathom_space *s, struct fathom_maps *ret,
				struct fathom_errinfo *reterr);
	/*
	 * Reads a part of the map: the mappings that hold @addresses, at most
	 * FATHOM_MAPS_QUERIES. When it fails the whole map is read. NULL: there is only the whole.
	 */
	fathom_err (*query_maps)(const struct fathom_space *s, const uint64_t *addresses, size_t n,
				 struct fathom_maps *ret);
	/*
	 * Reads up to @size bytes of memory at @avma; returns how many could be read, with errno
	 * for those that could not, 0 when there are none.
	 */
	size_t (*read)(const struct fathom_space *s, uint64_t avma, void *to, size_t size);
	/*
	 * Opens the memory of the program that runs now, to be closed with close(); -1 when that
	 * cannot be done. It is gone, for read_open(), when exec() has put another program in its
	 * place. NULL, both: no other comes.
	 */
	int (*open_memory)(const struct fathom_space *s);
	/* Reads as read() does; when the memory is gone it reads nothing and sets *@ret_gone. */
	size_t (*read_open)(const struct fathom_space *s, int memory, uint64_t avma, void *to,
			    size_t size, bool *ret_gone);
	/*
	 * Formats a path that leads to the very file of mapping @m, whatever became of its name;
	 * false when there is none. NULL: there never is.
	 */
	bool (*format_very_path)(const struct fathom_space *s, const struct fathom_mapping *m,
				 char *path, size_t cap);
	/*
	 * Whether the file system of mapping @m's file answers; if not, neither the file nor that
	 * memory is to be touched. NULL: what is asked of it is what was stored.
	 */
	bool (*is_reachable)(const struct fathom_space *s, const struct fathom_mapping *m);
	/*
	 * Formats the path of @name ("status", "root") in the directory of the process below /proc;
	 * false when it does not fit. NULL: there is no such process.
	 */
	bool (*format_proc_path)(const struct fathom_space *s, const char *name, char *path,
				 size_t cap);
	/*
	 * Whether what stat() says of a file, @id, tells that it is the one of mapping @m. NULL:
	 * device and inode tell.
	 */
	bool (*is_file)(const struct fathom_space *s, const struct fathom_mapping *m,
			const struct fathom_file_id *id);
	/*
	 * Finds what was stored of code at @avma that the program had made itself. NULL: nothing
	 * was stored; the files that the process has written have to do.
	 */
	bool (*find_code)(const struct fathom_space *s, uint64_t avma,
			  struct fathom_symbol_hit *ret);
	/* Calls @fn for all of that, in the order of addresses, until it returns false. */
	void (*each_code)(const struct fathom_space *s, fathom_code_fn fn, void *data);
	void (*describe)(const struct fathom_space *s, struct fathom_space_facts *ret);
	/* Frees what the kind has, @s itself included. */
	void (*free)(struct fathom_space *s);
};

/* A process has some hundred files, one that loads all it can some ten thousand. */
#define FATHOM_SPACE_BUCKETS 1024

/* The general part; a kind's own structure begins with it. */
struct fathom_space {
	const struct fathom_space_ops *ops;
	struct fathom *session;
	struct fathom_notes *notes;      /* of the target */
	char root[64];                   /* what stands before its paths, or "" */
	uint64_t page;                   /* bytes */
	bool is_live;                    /* map and memory may change */
	pthread_mutex_t lock;            /* of the list; held for no longer than to look at it */
	struct fathom_space_file *files; /* open; view.c */
	struct fathom_space_file *bucket[FATHOM_SPACE_BUCKETS]; /* the same by hash */
	_Atomic uint32_t parts;           /* batches that began with a part of the map, or tried */
	_Atomic(struct fathom_jit *) jit; /* kept between batches: jit.h */
	/* kept between batches where the map never changes */
	_Atomic(struct fathom_space_batch *) idle;
};

/* Prepares the general part, all zero: its page is the machine's. */
void fathom_space_init(struct fathom_space *s, const struct fathom_space_ops *ops,
		       struct fathom *session, struct fathom_notes *notes);
/* Closes the space, which may be NULL, with all its files. */
void fathom_space_close(struct fathom_space *s);

/* Whether the file of mapping @m can be touched, as the operation says. */
bool fathom_space_is_reachable(const struct fathom_space *s, const struct fathom_mapping *m);

/* Notes that the file that has the memory at @avma cannot be touched; FATHOM_E_TIMEOUT. */
fathom_err fathom_space_fail_reach(const struct fathom_space *s, uint64_t avma,
				   struct fathom_errinfo *reterr);

/* Reads memory, as the operation does. */
size_t fathom_space_read(const struct fathom_space *s, uint64_t avma, void *to, size_t size);

/*
 * The same, and what was not stored of constant segments from the files that were mapped
 * (constant_memory.c); may open files.
 */
size_t fathom_space_read_mapped(struct fathom_space *s, uint64_t avma, void *to, size_t size);

/* Memory for many small reads: through one descriptor, if the space has it. */
struct fathom_space_memory {
	const struct fathom_space *space;
	int fd; /* -1: none */
};

/*
 * Opens the memory of the program that @s runs now. When exec() has put another program in its
 * place, nothing is read any more.
 */
void fathom_space_memory_open(struct fathom_space_memory *m, const struct fathom_space *s);
/* Reads memory, as fathom_space_read() does. */
size_t fathom_space_memory_read(const struct fathom_space_memory *m, uint64_t avma, void *to,
				size_t size);
void fathom_space_memory_close(struct fathom_space_memory *m);

/* Answers @n @addresses (avma) into @answers. */
fathom_err fathom_space_symbolize(struct fathom_space *s,
				  const struct fathom_batch_options *options,
				  const uint64_t *addresses, size_t n,
				  struct fathom_answers *answers, struct fathom_errinfo *reterr);

/* A module where it is loaded. */
struct fathom_space_module {
	struct fathom_module *module;
	const char *name; /* as the map has it */
	uint64_t bias;
	uint64_t start; /* of its first mapping, avma */
};

/*
 * Calls @fn for each module, in the map's order, until it returns false. What it is given is there
 * for the time of the call. A file that is loaded more than once has a call for each.
 */
fathom_err fathom_space_walk(struct fathom_space *s,
			     bool (*fn)(const struct fathom_space_module *m, void *data),
			     void *data, struct fathom_errinfo *reterr);

/* How a program writes numbers, and for which machine it is. */
struct fathom_space_layout {
	uint32_t machine; /* EM_; EM_NONE: not known */
	uint8_t word;     /* bytes of a pointer */
	bool swap;        /* its byte order is not this machine's */
};

/*
 * Tells the layout of the module that the program started in; where that is not known, of the
 * first: programs may map files of other machines, to look at them or to run them.
 */
fathom_err fathom_space_layout(struct fathom_space *s, struct fathom_space_layout *ret,
			       struct fathom_errinfo *reterr);

/* Calls @fn for each module that is open; none is closed meanwhile. */
void fathom_space_each_open(struct fathom_space *s, void (*fn)(struct fathom_module *m, void *data),
			    void *data);

#endif
