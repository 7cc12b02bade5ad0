/* SPDX-License-Identifier: MIT */
/*
 * The state of the dynamic linker and libc in a live or dumped program: the loaded modules and
 * their lookup order, the functions that IFUNCs resolved to, the threads, and each thread's copy of
 * TLS symbols. It is read from the program's memory, which may change meanwhile, so inconsistent
 * data is rejected.
 *
 *	link_map.h	the list of loaded modules, in namespaces
 *	scope.h		the lookup order
 *	ifunc.h		what IFUNCs were resolved to
 *	threads.h	libc's list of threads
 *	tls.h		the threads' copies of TLS symbols
 */
#ifndef FATHOM_RUNTIME_RUNTIME_H
#define FATHOM_RUNTIME_RUNTIME_H

#include "host/base/array.h"
#include "host/module/budget.h"
#include "host/module/module.h"
#include "safe/base/reader.h"

/* A loaded module. */
struct fathom_runtime_module {
	struct fathom_module *module;
	const struct fathom_dynsym *dynsym;
	const char *path;
	uint64_t bias;
	uint32_t order; /* position in the lookup order; FATHOM_NONE: not in it */
	uint32_t link;  /* index of its first link; FATHOM_NONE: none */
};

struct fathom_link;
struct fathom_ifunc_slot;

struct fathom_links {
	FATHOM_ARRAY_OF(struct fathom_link);
};

struct fathom_ifunc_slots {
	FATHOM_ARRAY_OF(struct fathom_ifunc_slot);
};

struct fathom_glibc;

struct fathom_runtime {
	const struct fathom_reader *reader;
	struct fathom_budget *budget;
	bool is_live; /* the program is running: reads may see partial changes */
	struct fathom_runtime_module *modules;
	size_t n_modules;
	size_t cap_modules;
	/* of link_map.c */
	struct fathom_links links;
	struct fathom_keyed_array dynamics; /* modules by their dynamic sections */
	struct fathom_keyed_array places;   /* links by address */
	uint32_t main_program;              /* index of its module; FATHOM_NONE: not known */
	uint64_t debug;                     /* avma of its struct r_debug */
	bool is_unsettled;                  /* the lists changed during every read */
	/* of ifunc.c */
	struct fathom_ifunc_slots slots;
	bool has_slots;
	/* of glibc.c: made on first use */
	struct fathom_glibc *glibc;
	bool has_glibc; /* glibc was looked for */
};

/* Initializes a runtime whose memory @reader reads. Both must outlive it. */
void fathom_runtime_init(struct fathom_runtime *r, const struct fathom_reader *reader,
			 struct fathom_budget *budget, bool is_live);
void fathom_runtime_deinit(struct fathom_runtime *r);

/*
 * Adds a module loaded at @bias; its index is the number of modules before it. @module and @path
 * must outlive the runtime. FATHOM_E_MEMORY.
 */
fathom_err fathom_runtime_add(struct fathom_runtime *r, struct fathom_module *module,
			      const char *path, uint64_t bias);

/* Reads the links and the lookup order after all modules were added. FATHOM_E_MEMORY. */
fathom_err fathom_runtime_read(struct fathom_runtime *r);

/* Reads a word of memory, with the word size and byte order of @image. */
static inline bool fathom_runtime_word(const struct fathom_runtime *r,
				       const struct fathom_image *image, uint64_t avma,
				       uint64_t *ret)
{
	return fathom_reader_uint(r->reader, avma, fathom_image_address_size(image), image->swap,
				  ret);
}

/* Reads a 4-byte number. */
static inline bool fathom_runtime_u32(const struct fathom_runtime *r,
				      const struct fathom_image *image, uint64_t avma,
				      uint64_t *ret)
{
	return fathom_reader_uint(r->reader, avma, 4, image->swap, ret);
}

/* Returns word number @i of @bytes. */
static inline uint64_t fathom_runtime_load(const struct fathom_image *image, const uint8_t *bytes,
					   size_t i)
{
	return image->is64 ? load_u64(bytes + 8 * i, image->swap)
			   : load_u32(bytes + 4 * i, image->swap);
}

#endif
