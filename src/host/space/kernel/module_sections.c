/* SPDX-License-Identifier: MIT */
/* Reads where the sections of a module's file are: /sys/module/NAME/sections/SECTION. */
#include <stdlib.h>

#include "host/base/path.h"
#include "host/file/kernel_text.h"
#include "host/module/module.h"
#include "host/space/kernel/kernel.h"

/* Reads an address like "0xffffffffc0a01000" from sysfs; returns 0 if it is hidden or missing. */
static uint64_t read_address(const char *path)
{
	char text[24];
	char *end;
	const size_t size = fathom_text_read_short(path, text, sizeof text - 1);
	unsigned long long value;

	text[size] = '\0';
	if (size < 3 || memcmp(text, "0x", 2) != 0)
		return 0;
	value = strtoull(text + 2, &end, 16);
	return end == text + 2 || (*end && *end != '\n') ? 0 : value;
}

/*
 * Returns whether a section stays where the loader put it. Init sections are freed, and another
 * module may be there by now; the stated address of per-CPU memory is its template's.
 */
static bool stays(const struct fathom_section *s)
{
	return (s->flags & SHF_ALLOC) && s->size && s->name.data && !str_starts(s->name, ".init") &&
	       !str_starts(s->name, ".data..percpu") && !memchr(s->name.data, '/', s->name.size);
}

bool fathom_kernel_may_have_file(struct fathom_str owner)
{
	return !memchr(owner.data, '/', owner.size) && owner.data[0] != '.' &&
	       !str_starts(owner, "__builtin__") && !str_is(owner, "bpf");
}

static void note_sections(const struct fathom_kernel_place *place, struct fathom_str name)
{
	struct fathom_errinfo info;
	struct fathom_path path;

	(void)fathom_fail(&info, FATHOM_E_OS, "", 0,
			  "shows no addresses of its sections (run as root)");
	if (fathom_path_format(&path, "%s/sys/module/%.*s/sections", place->root, (int)name.size,
			       name.data))
		fathom_errinfo_set_file(&info, path.text);
	fathom_notes_add(place->notes, &info);
}

bool fathom_kernel_read_sections(const struct fathom_kernel_place *place, struct fathom_str name,
				 const struct fathom_object *o, uint64_t *ret)
{
	struct fathom_path path;
	bool any = false;

	for (uint32_t i = 0; i < o->n_sections; i++) {
		const struct fathom_section *s = &o->sections[i].header;

		ret[i] = 0;
		if (!i || !stays(s) ||
		    !fathom_path_format(&path, "%s/sys/module/%.*s/sections/%.*s", place->root,
					(int)name.size, name.data, (int)s->name.size, s->name.data))
			continue;
		ret[i] = read_address(path.text);
		any |= ret[i] != 0;
	}
	if (!any)
		note_sections(place, name);
	return any;
}

uint32_t fathom_kernel_section_at(const struct fathom_object *o, const uint64_t *sections,
				  uint64_t avma)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < o->n_sections; i++) {
		if (!sections[i] || avma < sections[i] ||
		    avma - sections[i] >= o->sections[i].header.size)
			continue;
		/* sysfs has one address for all sections with the same name. */
		if (found)
			return 0;
		found = i;
	}
	return found;
}
