/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets share: cutting the input into sections, files that live in memory, and
 * memory that changes while it is read.
 */
#ifndef FATHOM_FUZZ_H
#define FATHOM_FUZZ_H

#include <fathom/fathom.h>
#include <stdio.h>

#include "safe/base/cursor.h"
#include "safe/base/reader.h"
#include "safe/dwarf/unit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Input being taken apart. Past its end there are zeros. */
struct fuzz {
	const uint8_t *p;
	const uint8_t *end;
};

static inline struct fuzz fuzz_init(const uint8_t *data, size_t size)
{
	return (struct fuzz){ data, data + size };
}

static inline uint8_t fuzz_byte(struct fuzz *f)
{
	return f->p < f->end ? *f->p++ : 0;
}

static inline uint64_t fuzz_number(struct fuzz *f)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | fuzz_byte(f);
	return value;
}

/* The next section: two bytes of length, then its bytes, cut where the input ends. */
static inline struct fathom_bytes fuzz_section(struct fuzz *f)
{
	const size_t low = fuzz_byte(f);
	const size_t wanted = low | (size_t)fuzz_byte(f) << 8;
	const size_t left = (size_t)(f->end - f->p);
	const size_t size = wanted < left ? wanted : left;
	const struct fathom_bytes section = { size ? f->p : NULL, size };

	f->p += size;
	return section;
}

/* All that is left as one section. */
static inline struct fathom_bytes fuzz_rest(struct fuzz *f)
{
	const struct fathom_bytes rest = { f->p < f->end ? f->p : NULL, (uint64_t)(f->end - f->p) };

	f->p = f->end;
	return rest;
}

/* A DWARF file of as many sections as the input gives. */
static inline void fuzz_dwarf(struct fuzz *f, struct fathom_dwarf *ret)
{
	*ret = (struct fathom_dwarf){ .serial = 1, .swap = fuzz_byte(f) & 1 };
	for (int i = 0; i < FATHOM_DWARF_SECTIONS; i++)
		ret->section[i] = fuzz_section(f);
}

/* Uses a value so that reading it cannot be left out. */
static inline void fuzz_use(uint64_t value)
{
	__asm__ volatile("" : : "r"(value));
}

/* Reads every byte of @s: strings must lie inside what they come from. */
static inline void fuzz_use_str(struct fathom_str s)
{
	for (uint32_t i = 0; i < s.size; i++)
		fuzz_use((uint8_t)s.data[i]);
}

/* A file in memory with the bytes at @data; its path in @path. Returns its descriptor. */
int fuzz_file(const uint8_t *data, size_t size, char path[64]);

/* A session of one thread and little memory, @compat as in its options. */
struct fathom *fuzz_session(const struct fathom_compat_options *compat);

#define FUZZ_CHANGES 8
#define FUZZ_MEMORY  (1 << 16)

/* Memory of a process that changes while it is read. */
struct fuzz_changing {
	uint8_t bytes[FUZZ_MEMORY];
	size_t size;
	uint64_t base; /* avma */
	uint32_t n_reads;
	struct {
		uint32_t when; /* so much has been read; 0: never */
		uint32_t off;
		uint8_t value;
	} change[FUZZ_CHANGES];
};

/* Makes memory at @base of all that is left: its changes, then its bytes. */
struct fathom_reader fuzz_changing_fill(struct fuzz_changing *m, uint64_t base, struct fuzz *f);

#endif
