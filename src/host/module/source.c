/* SPDX-License-Identifier: MIT */
#include "host/module/source.h"

#include "host/module/unit_data.h"
#include "host/module/worker.h"

/* Finds the text of @path in the line table of the unit at @off. */
static fathom_err find_in_unit(struct fathom_worker *w, struct fathom_debug *d, uint64_t off,
			       struct fathom_str path, struct fathom_line_text *ret)
{
	struct fathom_open_unit u;
	fathom_err err = fathom_unit_data_open(w, d, off, &u, NULL);

	if (err)
		return err == FATHOM_E_MEMORY ? err : FATHOM_END;
	err = u.line_off == FATHOM_NO_LINES
		      ? FATHOM_END
		      : fathom_lines_source(w, &u.unit, u.comp_dir, u.line_off, path, ret);
	fathom_unit_data_close(w, &u);
	return err;
}

/* Finds the text of @path in a unit that claims @svma. */
static fathom_err find_source(struct fathom_worker *w, struct fathom_debug *d, uint64_t svma,
			      struct fathom_str path, struct fathom_line_text *ret)
{
	const struct fathom_unit_map *map = fathom_units_quick(&d->units);
	uint64_t offs[FATHOM_UNIT_CANDIDATES];
	fathom_err err = FATHOM_END;
	size_t n = map ? fathom_unit_candidates(map, svma, offs) : 0;

	/* Indexes may leave units out. */
	if (!n) {
		map = fathom_units_full(&d->units, w);
		n = map ? fathom_unit_candidates(map, svma, offs) : 0;
	}
	if (!map)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < n && err == FATHOM_END; i++)
		err = find_in_unit(w, d, offs[i], path, ret);
	return err;
}

fathom_err fathom_source_find(struct fathom_module *m, uint64_t svma, struct fathom_str path,
			      struct fathom_line_text *ret)
{
	enum fathom_reason reason;
	struct fathom_debug *d = fathom_module_debug(m, &reason);
	struct fathom_worker *w;
	fathom_err err;

	if (!d)
		return FATHOM_E_NOT_FOUND;
	w = fathom_worker_acquire(m->session);
	if (!w)
		return FATHOM_E_MEMORY;
	err = find_source(w, d, svma, path, ret);
	fathom_worker_release(w);
	return err == FATHOM_END ? FATHOM_E_NOT_FOUND : err;
}
