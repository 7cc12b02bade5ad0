/* SPDX-License-Identifier: MIT */
/*
 * Stacks of systemd-coredump (src/shared/elf-util.c), and the lines that tell its modules:
 *
 *	Module /usr/lib/libfoo.so with build-id 17edc67776b6fc50b0e4a2adfd9d8f14a350f027
 *	#0  0x00007f8d3b0a4a7c n/a (libfoo.so + 0x8aa7c)
 *
 * The number counts from where the module was mapped. The first frame's is exact.
 */
#include "host/filter/formats.h"

#include "host/base/hash.h"

/* Returns the build-id of the module called @name; NULL: the log told none. */
static const struct fathom_log_build_id *find(struct fathom_log_scan *s, struct fathom_str name)
{
	const uint32_t *at =
		fathom_key_map_at(&s->build_id_numbers, fathom_hash_bytes(0, name.data, name.size));
	const struct fathom_log_build_id *known;

	s->failed |= !at;
	if (!at || *at == FATHOM_KEY_NEW)
		return NULL;
	known = &s->build_ids.items[*at];
	return known->name.size == name.size && !memcmp(known->name.data, name.data, name.size)
		       ? known
		       : NULL;
}

/* Keeps the build-id of the module called @name; no @id: it has none. */
static void keep(struct fathom_log_scan *s, struct fathom_str name, struct fathom_str id)
{
	uint32_t *at =
		fathom_key_map_at(&s->build_id_numbers, fathom_hash_bytes(0, name.data, name.size));
	char *own = fathom_arena_strdup(&s->build_id_texts, name);
	char *own_id = fathom_arena_strdup(&s->build_id_texts, id);

	if (!at || !own || !own_id ||
	    !fathom_array_push(&s->build_ids, (struct fathom_log_build_id){ { own, name.size },
									    { own_id, id.size } }))
		s->failed = true;
	else
		*at = (uint32_t)(s->build_ids.n - 1);
}

/* Reads the line of a module, from its name on. */
static bool read_module(struct fathom_log_scan *s, struct fathom_log_line line)
{
	const char *name = line.at;
	struct fathom_str id = { "", 0 };
	struct fathom_str module;

	if (!fathom_line_find(&line, " with"))
		return false;
	module = fathom_log_last_part(fathom_log_text(name, line.at));
	if (fathom_line_take(&line, " with build-id ")) {
		const char *start = line.at;

		while (line.at < line.end && fathom_hex_digit(*line.at) < 16)
			line.at++;
		id = fathom_log_text(start, line.at);
	} else if (!fathom_line_take(&line, " without build-id")) {
		return false;
	}
	if (module.size)
		keep(s, module, id);
	return true;
}

bool fathom_log_read_coredump(struct fathom_log_scan *s, struct fathom_log_line line)
{
	struct fathom_log_number n = { .base = FATHOM_LOG_FIRST_MAPPING };
	const struct fathom_log_build_id *known;
	struct fathom_log_line module = line;
	struct fathom_log_frame frame;

	if (fathom_line_find(&module, "Module ") && fathom_line_take(&module, "Module ") &&
	    read_module(s, module))
		return true;
	if (!fathom_log_take_frame(&line, &frame) || !fathom_log_take_place(&line, " + 0x", &n))
		return false;
	n.live = frame.pc;
	n.frame = frame.number + 1;
	n.kind = frame.number ? FATHOM_LOG_RETURN : FATHOM_LOG_EXACT;
	known = find(s, fathom_log_last_part(n.module));
	if (known)
		n.build_id = known->id;
	fathom_log_add(s, &n);
	return true;
}
