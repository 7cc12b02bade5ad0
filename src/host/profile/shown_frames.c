/* SPDX-License-Identifier: MIT */
/*
 * Frames of a profile that are left out of stacks in which a script has some: its interpreter's
 * own, or all of one kind. The weight of a node that is left out is its caller's. Stacks without
 * frames of a script stay as they are. Both kinds of stacks have callers in common: so each node is
 * there twice, as the file has it, and as it is shown, with a number that is higher by as many as
 * the file has nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "host/profile/in_memory.h"
#include "safe/base/error.h"

/* Roles of locations. */
enum role { ROLE_NATIVE, ROLE_RUNTIME, ROLE_SCRIPT, ROLE_WAIT };

/* Sets the role of each module, at @ret; returns whether one is of a script. */
static bool find_roles(const struct fathom_profile *p, uint8_t *ret)
{
	bool has_script = false;

	for (size_t i = 0; i < p->n_modules; i++) {
		const struct fathom_profile_module *m = &p->modules[i];

		if (m->kind == FATHOM_PROFILE_MODULE_WAITS)
			ret[i] = ROLE_WAIT;
		if (m->kind != FATHOM_PROFILE_MODULE_SCRIPT)
			continue;
		ret[i] = ROLE_SCRIPT;
		has_script = true;
		if (m->runtime < p->n_modules)
			ret[m->runtime] = ROLE_RUNTIME;
	}
	return has_script;
}

static enum role role_of(const struct fathom_profile *p, const uint8_t *roles, uint32_t node)
{
	const uint32_t location = p->nodes[node].location;
	const uint32_t module = location == UINT32_MAX ? UINT32_MAX : p->locations[location].module;

	return module == UINT32_MAX ? ROLE_NATIVE : (enum role)roles[module];
}

static bool is_left_out(enum role role, enum fathom_profile_frames frames)
{
	switch (frames) {
	case FATHOM_PROFILE_MERGED_FRAMES:
		return role == ROLE_RUNTIME;
	case FATHOM_PROFILE_SCRIPT_FRAMES:
		return role == ROLE_RUNTIME || role == ROLE_NATIVE;
	case FATHOM_PROFILE_NATIVE_FRAMES:
		return role == ROLE_SCRIPT;
	default:
		return false;
	}
}

/* Makes room for the second nodes. */
static fathom_err make_room(struct fathom_profile *p, struct fathom_errinfo *reterr)
{
	const size_t n = p->n_nodes;
	const size_t bytes = n * (sizeof *p->nodes + sizeof *p->shown);
	struct fathom_profile_node *nodes;

	if (p->shown)
		return FATHOM_OK;
	if (n > UINT32_MAX / 2 || !fathom_memory_fits(&p->session->memory, bytes))
		return fathom_fail_by(reterr, FATHOM_E_LIMIT, FATHOM_CAUSE_BUDGET,
				      "the stacks do not fit the memory budget");
	nodes = realloc(p->nodes, 2 * n * sizeof *nodes);
	if (!nodes)
		return fathom_fail_memory(reterr);
	p->nodes = nodes;
	p->shown = malloc(n * sizeof *p->shown);
	if (!p->shown)
		return fathom_fail_memory(reterr);
	fathom_memory_count(&p->session->memory, bytes);
	p->counted += bytes;
	p->n_read_nodes = n;
	p->n_nodes = 2 * n;
	/* Nobody refers to it: it stands for no frame. */
	p->nodes[n] = p->nodes[n > 1];
	return FATHOM_OK;
}

/*
 * Makes the second nodes: p->shown is the innermost frame that is shown of each stack, at first as
 * if scripts had frames in all of them.
 */
static void show(struct fathom_profile *p, const uint8_t *roles, enum fathom_profile_frames frames)
{
	const uint32_t n = (uint32_t)p->n_read_nodes;
	uint32_t *shown = p->shown;

	shown[0] = 0;
	for (uint32_t i = 1; i < n; i++) {
		const uint32_t caller = shown[p->nodes[i].caller];

		p->nodes[n + i] = (struct fathom_profile_node){ caller, p->nodes[i].location };
		shown[i] = is_left_out(role_of(p, roles, i), frames) ? caller : n + i;
	}
}

/* Takes stacks without frames of a script as they are. @in_script: one byte for each node. */
static void keep_others(struct fathom_profile *p, const uint8_t *roles, uint8_t *in_script)
{
	for (uint32_t i = 1; i < p->n_read_nodes; i++) {
		in_script[i] = in_script[p->nodes[i].caller] || role_of(p, roles, i) == ROLE_SCRIPT;
		if (!in_script[i])
			p->shown[i] = i;
	}
}

fathom_err fathom_profile_show_frames(struct fathom_profile *profile,
				      enum fathom_profile_frames frames,
				      struct fathom_errinfo *reterr)
{
	struct fathom_profile *p = profile;
	uint8_t *roles;
	uint8_t *in_script;
	fathom_err err = FATHOM_OK;

	if (frames > FATHOM_PROFILE_NATIVE_FRAMES)
		return fathom_fail_options(reterr);
	roles = calloc(p->n_modules + 1, 1);
	in_script = calloc(p->n_nodes, 1);
	if (!roles || !in_script) {
		err = fathom_fail_memory(reterr);
	} else if (find_roles(p, roles)) {
		err = make_room(p, reterr);
		if (!err) {
			show(p, roles, frames);
			keep_others(p, roles, in_script);
		}
	}
	free(roles);
	free(in_script);
	return err;
}
