/* SPDX-License-Identifier: MIT */
/* Reads the kernel's memory from /proc/kcore or, for code that hardly changes, from its file. */
#include <stdatomic.h>

#include "host/base/path.h"
#include "host/module/module.h"
#include "host/space/kernel/kernel.h"

fathom_err fathom_kernel_memory(struct fathom_kernel *k, const struct fathom_kcore **ret,
				struct fathom_errinfo *reterr)
{
	struct fathom_kcore *memory = atomic_load_explicit(&k->memory, memory_order_acquire);
	struct fathom_kcore *expected = NULL;
	struct fathom_errinfo info;
	struct fathom_path path;
	fathom_err err;

	if (memory) {
		*ret = memory;
		return FATHOM_OK;
	}
	if (!fathom_path_format(&path, "%s/proc/kcore", k->place.root))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "the root directory's path is too long");
	err = fathom_kcore_open(path.text, &memory, &info);
	if (err) {
		fathom_notes_add(k->place.notes, &info);
		if (reterr)
			*reterr = info;
		return err;
	}
	if (!atomic_compare_exchange_strong(&k->memory, &expected, memory)) {
		fathom_kcore_close(memory);
		memory = expected;
	}
	*ret = memory;
	return FATHOM_OK;
}

/* Returns how many bytes from @svma on are code, which only the kernel itself writes to. */
static uint64_t code_left(const struct fathom_object *o, uint64_t svma)
{
	const struct fathom_object_section *s = &o->sections[fathom_object_section_at(o, svma)];

	if (s == o->sections || !(s->header.flags & SHF_EXECINSTR) || (s->header.flags & SHF_WRITE))
		return 0;
	return s->header.size - (svma - s->base);
}

static void note_file(const struct fathom_kernel *k, const struct fathom_object *o)
{
	struct fathom_errinfo info;

	(void)fathom_fail(&info, FATHOM_E_UNSUPPORTED, "", 0,
			  "code is read from this file: the kernel patches its own (alternatives, "
			  "static keys, ftrace), so single instructions that run may be others; "
			  "addresses they state are as linked");
	fathom_errinfo_set_file(&info, o->file->path);
	fathom_notes_add(k->place.notes, &info);
}

fathom_err fathom_kernel_read_stated(struct fathom_target *t, fathom_err err, uint64_t avma,
				     void *to, size_t size, size_t *ret_size)
{
	struct fathom_kernel *k = (struct fathom_kernel *)t;
	const struct fathom_kernel_image *image;
	const struct fathom_object *o;
	uint64_t left;

	if (err == FATHOM_E_NOT_FOUND || err == FATHOM_E_MEMORY)
		return err;
	image = k->start ? fathom_kernel_image(k) : NULL;
	if (!image || !image->module || avma < image->low || avma >= image->high)
		return err;
	o = image->module->main;
	left = code_left(o, avma - image->bias);
	left = fathom_object_read(o, avma - image->bias, to, left < size ? left : size);
	*ret_size = (size_t)left;
	if (!left)
		return err;
	note_file(k, o);
	return FATHOM_OK;
}

fathom_err fathom_kernel_read(struct fathom_target *t, uint64_t avma, void *to, size_t size,
			      size_t *ret_size, struct fathom_errinfo *reterr)
{
	const struct fathom_kcore *memory;

	FATHOM_TRY(fathom_kernel_memory((struct fathom_kernel *)t, &memory, reterr));
	*ret_size = fathom_kcore_read(memory, avma, to, size);
	return *ret_size || !size
		       ? FATHOM_OK
		       : fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", avma,
				     "no memory of the kernel can be read at this address");
}
