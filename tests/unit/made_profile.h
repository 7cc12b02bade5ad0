/* SPDX-License-Identifier: MIT */
/*
 * Profiles that are made of texts. A stack is its frames with ; between them, the outermost first.
 * A frame is NAME, NAME@MODULE or NAME@MODULE!FILE:LINE, or 0xADDRESS@MODULE of a file, after a < a
 * return address. "??" has no name.
 */
#ifndef FATHOM_UNIT_MADE_PROFILE_H
#define FATHOM_UNIT_MADE_PROFILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/profile.h"
#include "host/profile/samples_writer.h"

#define MADE_FRAMES 4096

struct made_frame {
	char text[512];
	uint32_t caller; /* node */
	uint32_t node;
	uint32_t location;
};

struct made_profile {
	struct fathom_profile_writer w;
	char modules[16][512];
	struct made_frame frames[MADE_FRAMES]; /* each with each caller */
	size_t n_frames;
	uint32_t waker; /* of samples from now on */
	uint8_t goes_on;
};

static inline struct fathom_str made_str(const char *s)
{
	return (struct fathom_str){ s, (uint32_t)strlen(s) };
}

/* Begins the path of a module of scripts; the path of what executes them and "]" follow. */
#define MADE_SCRIPT "[script of "

/*
 * Returns the number of module @path, which is of JIT code: nothing but the profile names it; or
 * [waits], of reasons; or of scripts.
 */
static inline uint32_t made_module(struct made_profile *m, const char *path)
{
	struct fathom_profile_module module = { .path = path,
						.kind = strcmp(path, "[waits]") == 0
								? FATHOM_PROFILE_MODULE_WAITS
								: FATHOM_PROFILE_MODULE_JIT };
	char runtime[512];
	uint32_t i = 0;

	if (sscanf(path, MADE_SCRIPT "%511[^]]", runtime) == 1) {
		module.kind = FATHOM_PROFILE_MODULE_SCRIPT;
		module.runtime = made_module(m, runtime);
	}
	while (i < m->w.n_modules && strcmp(m->modules[i], path) != 0)
		i++;
	if (i < m->w.n_modules)
		return i;
	if (i >= 16)
		abort();
	(void)snprintf(m->modules[i], sizeof m->modules[i], "%.511s", path);
	return fathom_profile_write_module(&m->w, &module);
}

/* Adds module @path, which is a file with a build-id of hexadecimal digits, "" for none. */
static inline void made_file(struct made_profile *m, const char *path, const char *id)
{
	uint8_t bytes[32];
	struct fathom_profile_module module = { .path = path,
						.build_id = bytes,
						.kind = FATHOM_PROFILE_MODULE_FILE };

	for (; sscanf(id, "%2hhx", &bytes[module.build_id_size]) == 1; id += 2)
		if (++module.build_id_size == sizeof bytes)
			abort();
	(void)snprintf(m->modules[m->w.n_modules], sizeof m->modules[0], "%.511s", path);
	(void)fathom_profile_write_module(&m->w, &module);
}

static inline uint32_t made_location(struct made_profile *m, const char *text)
{
	struct fathom_profile_symbol s = { .source = FATHOM_SOURCE_JITDUMP };
	struct fathom_profile_location l = { .module = UINT32_MAX };
	char copy[512];
	char *module;
	char *file;
	char *line;

	l.pc.kind = *text == '<' ? FATHOM_PC_RETURN : FATHOM_PC_EXACT;
	(void)snprintf(copy, sizeof copy, "%s", text + (*text == '<'));
	file = strchr(copy, '!');
	if (file)
		*file++ = '\0';
	line = file ? strrchr(file, ':') : NULL;
	if (line)
		*line++ = '\0';
	module = strchr(copy, '@');
	if (module)
		*module++ = '\0';
	if (module)
		l.module = made_module(m, module);
	l.pc.address =
		strncmp(copy, "0x", 2) ? 0x1000 + 16 * m->w.n_locations : strtoull(copy, NULL, 16);
	s.name = made_str(copy);
	s.file = made_str(file ? file : "");
	s.line = line ? (uint32_t)atoi(line) : 0;
	if (!strcmp(copy, "??") || !strncmp(copy, "0x", 2))
		return fathom_profile_write_location(&m->w, &l, UINT32_MAX);
	return fathom_profile_write_location(&m->w, &l, fathom_profile_write_symbol(&m->w, &s));
}

/* Returns the node of @frame, of @size bytes, called by @caller. */
static inline uint32_t made_node(struct made_profile *m, const char *frame, size_t size,
				 uint32_t caller)
{
	struct made_frame f = { .caller = caller };
	struct fathom_profile_node n = { .caller = caller };

	(void)snprintf(f.text, sizeof f.text, "%.*s", (int)(size < 511 ? size : 511), frame);
	for (size_t i = 0; i < m->n_frames; i++)
		if (m->frames[i].caller == caller && !strcmp(m->frames[i].text, f.text))
			return m->frames[i].node;
	n.location = UINT32_MAX;
	for (size_t i = 0; i < m->n_frames; i++)
		if (!strcmp(m->frames[i].text, f.text))
			n.location = m->frames[i].location;
	if (n.location == UINT32_MAX)
		n.location = made_location(m, f.text);
	f.location = n.location;
	f.node = fathom_profile_write_node(&m->w, &n);
	if (m->n_frames >= MADE_FRAMES)
		abort();
	m->frames[m->n_frames++] = f;
	return f.node;
}

/* Adds a thread, of the cgroup that was written last. */
static inline uint32_t made_thread(struct made_profile *m, int32_t pid, int32_t tid,
				   const char *name)
{
	const struct fathom_profile_thread t = { .pid = pid, .tid = tid, .name = name };

	return fathom_profile_write_thread(&m->w, &t, m->w.n_cgroups - 1);
}

/* Adds a sample with @stack, "" for none. */
static inline void made_sample(struct made_profile *m, uint64_t ns, uint32_t thread,
			       const char *stack, uint64_t weight, uint8_t part, uint8_t stop)
{
	struct fathom_profile_sample s = { .ns = ns,
					   .thread = thread,
					   .weight = weight,
					   .part = part,
					   .stop = stop,
					   .waker = m->waker,
					   .goes_on = m->goes_on };

	while (*stack) {
		const size_t size = strcspn(stack, ";");

		s.node = made_node(m, stack, size, s.node);
		stack += size + (stack[size] == ';');
	}
	fathom_profile_write_sample(&m->w, &s);
}

#endif
