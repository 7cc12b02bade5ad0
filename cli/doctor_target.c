/* SPDX-License-Identifier: MIT */
/* The checks of one TARGET: lines of its modules, its files, the right to attach to it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/packages.h"

static void check_attach(struct doctor *d, struct fathom_target *target, int pid)
{
	struct fathom_errinfo info;
	char text[512];

	if (!fathom_attach_check(target, &info)) {
		doctor_ok(d, "attach", "process %d may be attached to", pid);
		return;
	}
	(void)fathom_errinfo_format(&info, text, sizeof text);
	doctor_limited(d, "attach", doctor_attach_remedy(&info), "process %d: %s", pid, text);
}

/* Returns whether @m is a file; the kernel has names such as [vdso] for the others. */
static bool is_file(const struct fathom_module_state *m)
{
	return m->module->path[0] != '[';
}

/* Formats "install the debug package of libc6, build-id 0123". */
static void format_package(const struct fathom_module_info *m, const char *package, char *text,
			   size_t cap)
{
	int n = snprintf(text, cap, "install the debug package%s%s", *package ? " of " : "",
			 package);

	if (!m->build_id)
		return;
	n += snprintf(text + n, cap - (size_t)n, ", build-id ");
	for (uint32_t i = 0; i < m->build_id_size && (size_t)n + 3 < cap; i++)
		n += snprintf(text + n, cap - (size_t)n, "%02x", m->build_id[i]);
}

/* Prints why @m has no lines. @package: which has installed it; "": none is known. */
static void print_no_lines(struct doctor *d, const struct fathom_module_state *m,
			   const char *package)
{
	struct doctor_line line = { .check = "lines",
				    .state = DOCTOR_LIMITED,
				    .module = m->module };
	char remedy[256];
	char *detail = NULL;

	line.remedy = remedy;
	if (m->reason == FATHOM_REASON_BUILD_ID_MISMATCH)
		(void)snprintf(remedy, sizeof remedy,
			       "install the debug package of exactly this version");
	else if (m->reason == FATHOM_REASON_NO_PERMISSION)
		(void)snprintf(remedy, sizeof remedy, "run as a user who may read it");
	else if (m->reason == FATHOM_REASON_LIMIT)
		(void)snprintf(remedy, sizeof remedy, "raise the limit with --memory");
	else if (m->reason == FATHOM_REASON_TIMEOUT)
		(void)snprintf(remedy, sizeof remedy, "allow more with --debuginfod-timeout");
	else if (m->reason != FATHOM_REASON_NO_DEBUG_INFO)
		line.remedy = NULL;
	else if (*package || m->module->build_id)
		format_package(m->module, package, remedy, sizeof remedy);
	else
		(void)snprintf(remedy, sizeof remedy, "compile it with -g");
	if (asprintf(&detail, "%s: %s", m->module->path, fathom_reason_name(m->reason)) < 0)
		must(NULL);
	line.detail = detail;
	doctor_print(d, &line);
	free(detail);
}

static void print_deleted(struct doctor *d, const struct fathom_module_state *m)
{
	struct doctor_line line = { .check = "files",
				    .state = DOCTOR_LIMITED,
				    .remedy = "restart the process",
				    .module = m->module };
	char *detail = NULL;

	if (asprintf(&detail, "%s: has been deleted or replaced", m->module->path) < 0)
		must(NULL);
	line.detail = detail;
	doctor_print(d, &line);
	free(detail);
}

/* Returns the module of @modules with @path. */
static const struct fathom_module_state *find_module(const struct fathom_modules *modules,
						     const char *path)
{
	size_t i = 0;

	while (fathom_modules_get(modules, i)->module->path != path)
		i++;
	return fathom_modules_get(modules, i);
}

/* Prints the modules without lines, sorted by path. */
static void check_lines(struct doctor *d, const struct fathom_modules *modules)
{
	const size_t n = fathom_modules_count(modules);
	struct packaged *without = must(calloc(n + 1, sizeof *without));
	size_t n_without = 0;
	size_t n_files = 0;

	for (size_t i = 0; i < n; i++) {
		const struct fathom_module_state *m = fathom_modules_get(modules, i);

		n_files += is_file(m);
		if (is_file(m) && m->reason)
			without[n_without++].path = m->module->path;
	}
	if (n_without)
		packages_find(without, n_without);
	for (size_t i = 0; i < n_without; i++)
		print_no_lines(d, find_module(modules, without[i].path), without[i].package);
	if (!n_without && n_files)
		doctor_ok(d, "lines", "%zu module%s", n_files,
			  n_files == 1 ? " has them" : "s have them");
	free(without);
}

/* Prints the notes of @target: files that are missing, refused or damaged. */
static void check_notes(struct doctor *d, const struct fathom_target *target)
{
	const struct fathom_errinfo *note;
	char text[512];

	for (size_t i = 0; (note = fathom_target_note(target, i)) != NULL; i++) {
		(void)fathom_errinfo_format(note, text, sizeof text);
		doctor_limited(d, "files", common_note_remedy(target, note), "%s", text);
	}
}

void doctor_check_target(struct doctor *d, struct fathom_target *target)
{
	struct fathom_modules *modules;
	struct fathom_target_info target_info;
	struct fathom_errinfo info;
	char text[512];

	fathom_target_get_info(target, &target_info);
	if (target_info.kind == FATHOM_TARGET_PROCESS)
		check_attach(d, target, target_info.pid);
	if (fathom_modules_read(target, &modules, &info)) {
		(void)fathom_errinfo_format(&info, text, sizeof text);
		doctor_limited(d, "lines", NULL, "%s", text);
		return;
	}
	check_lines(d, modules);
	for (size_t i = 0; i < fathom_modules_count(modules); i++)
		if (fathom_modules_get(modules, i)->is_deleted)
			print_deleted(d, fathom_modules_get(modules, i));
	check_notes(d, target);
	/* Files of the kernel are only opened when they are needed. */
	fathom_target_get_info(target, &target_info);
	if (target_info.kind == FATHOM_TARGET_KERNEL && !target_info.debug_path)
		doctor_limited(d, "lines", "install the debug package of the kernel",
			       "the kernel: %s", fathom_reason_name(FATHOM_REASON_NO_DEBUG_INFO));
	fathom_modules_free(modules);
}
