/* SPDX-License-Identifier: MIT */
/*
 * Spaces: targets that run or ran, a process for one, and have a map that says which file is where.
 *
 * Each view has one map; what it says was true at one moment. That of what was stored is read once,
 * and what was found out about it is kept between views. Files stay open between views, as modules,
 * so that they are read once; a module that nothing maps any more is closed.
 */
#ifndef FATHOM_TARGET_SPACE_SPACE_H
#define FATHOM_TARGET_SPACE_SPACE_H

#include <pthread.h>

#include "host/file/maps.h"
#include "host/jit/jit.h"
#include "host/target/target.h"

struct fathom_file_id;
struct fathom_space;
struct fathom_space_view;

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
	/* Reads many pieces in one go, as read_each() of struct fathom_reader. NULL: it cannot. */
	size_t (*read_each)(const struct fathom_space *s, const uint64_t *avmas, size_t n,
			    size_t size, uint8_t *to);
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
	/* Returns the build-id that is known of the file of mapping @m. NULL: none is. */
	struct fathom_bytes (*build_id)(const struct fathom_space *s,
					const struct fathom_mapping *m);
	/*
	 * Finds what was stored of code at @avma that the program had made itself. NULL: nothing
	 * was stored; the files that the process has written have to do.
	 */
	bool (*find_code)(const struct fathom_space *s, uint64_t avma,
			  struct fathom_symbol_hit *ret);
	/* Calls @fn for all of that, in the order of addresses, until it returns false. */
	void (*each_code)(const struct fathom_space *s, fathom_code_fn fn, void *data);
	/* Tells what is known of the process. NULL: nothing. */
	void (*describe)(const struct fathom_space *s, struct fathom_space_facts *ret);
	/* Frees what the kind has, @s itself included. */
	void (*free)(struct fathom_space *s);
};

/* A process has some hundred files, one that loads all it can some ten thousand. */
#define FATHOM_SPACE_BUCKETS 1024

/* The general part; a kind's own structure begins with it. */
struct fathom_space {
	struct fathom_target target;
	const struct fathom_space_ops *ops;
	struct fathom_notes *notes;      /* of the target */
	char root[64];                   /* what stands before its paths, or "" */
	uint64_t page;                   /* bytes */
	pthread_mutex_t lock;            /* of the list; held for no longer than to look at it */
	struct fathom_space_file *files; /* open; mapped_files.c */
	struct fathom_space_file *bucket[FATHOM_SPACE_BUCKETS]; /* the same by hash */
	_Atomic uint32_t parts;           /* views that began with a part of the map, or tried */
	_Atomic(struct fathom_jit *) jit; /* kept between batches: jit.h */
	/* kept between views where the map never changes */
	_Atomic(struct fathom_space_view *) idle;
};

/* Prepares the general part, all zero: its page is the machine's. */
void fathom_space_init(struct fathom_space *s, const struct fathom_space_ops *ops,
		       const struct fathom_target_ops *target_ops,
		       struct fathom_search_paths *paths, enum fathom_target_kind kind);

/* What the operations of all spaces are, but for describe(). */
#define FATHOM_SPACE_TARGET_OPS                                                                    \
	.begin = fathom_space_begin, .end = fathom_space_end, .locate = fathom_space_locate,       \
	.modules = fathom_space_modules, .name_rest = fathom_space_name_rest,                      \
	.layout = fathom_space_layout, .has_stayed = fathom_space_has_stayed,                      \
	.jit = fathom_space_jit, .main_tid = fathom_space_main_tid, .read = fathom_space_read_now, \
	.each_open = fathom_space_each_open, .store = fathom_snapshot_store,                       \
	.free = fathom_space_free

fathom_err fathom_space_begin(struct fathom_target *t, enum fathom_view_use use,
			      const uint64_t *avmas, size_t n, struct fathom_view **ret,
			      struct fathom_errinfo *reterr);
void fathom_space_end(struct fathom_view *v);
fathom_err fathom_space_locate(struct fathom_view *v, uint64_t avma, struct fathom_place *ret);
fathom_err fathom_space_modules(struct fathom_view *v, fathom_module_fn fn, void *data);
fathom_err fathom_space_name_rest(struct fathom_view *v, const struct fathom_rest *rest);
fathom_err fathom_space_layout(struct fathom_view *v, struct fathom_layout *ret);
bool fathom_space_has_stayed(struct fathom_view *v);
struct fathom_jit_process *fathom_space_jit(struct fathom_view *v);
int32_t fathom_space_main_tid(const struct fathom_target *t);
fathom_err fathom_space_read_now(struct fathom_target *t, uint64_t avma, void *to, size_t size,
				 size_t *ret_size, struct fathom_errinfo *reterr);
/* Of spaces that live: the threads below /proc; that they are not stopped. */
fathom_err fathom_space_tasks(struct fathom_view *v, bool (*fn)(int32_t tid, void *data),
			      void *data);
fathom_err fathom_space_not_stopped(struct fathom_view *v, int32_t tid,
				    struct fathom_registers *ret, struct fathom_errinfo *reterr);
void fathom_space_each_open(const struct fathom_target *t,
			    void (*fn)(struct fathom_module *m, void *data), void *data);
fathom_err fathom_snapshot_store(struct fathom_target *t, const char *path,
				 struct fathom_errinfo *reterr);
/* Closes the space with all its files. */
void fathom_space_free(struct fathom_target *t);

/* Tells what is known of the process: zeros where nothing is. */
void fathom_space_describe(const struct fathom_space *s, struct fathom_space_facts *ret);

/* Whether the file of mapping @m can be touched, as the operation says. */
bool fathom_space_is_reachable(const struct fathom_space *s, const struct fathom_mapping *m);

/* Notes that the file that has the memory at @avma cannot be touched; FATHOM_E_TIMEOUT. */
fathom_err fathom_space_fail_reach(const struct fathom_space *s, uint64_t avma,
				   struct fathom_errinfo *reterr);

/* Formats the path that the user states for the program, if @m is of that: it has @entry in @maps.
 */
bool fathom_space_format_exe(const struct fathom_space *s, const struct fathom_maps *maps,
			     uint64_t entry, const struct fathom_mapping *m, char *path,
			     size_t cap);

/* Reads memory, as the operation does. */
size_t fathom_space_read(const struct fathom_space *s, uint64_t avma, void *to, size_t size);

/* Memory of the program that runs now, for many reads: through one descriptor, if the kind has it.
 */
struct fathom_space_memory {
	const struct fathom_space *space;
	int fd;         /* -1: none */
	bool is_opened; /* at least that was tried: it is at the first read */
	bool is_pinned; /* without a descriptor nothing is read */
	bool is_gone;   /* exec() has put another program in its place: nothing is read any more */
};

/* Prepares a reader of the memory of @s, which is opened when it is first read. */
struct fathom_reader fathom_space_memory_init(struct fathom_space_memory *m,
					      const struct fathom_space *s);
/* Opens the memory now: all that is read is of the program that runs now. */
void fathom_space_memory_pin(struct fathom_space_memory *m);
void fathom_space_memory_close(struct fathom_space_memory *m);

#endif
