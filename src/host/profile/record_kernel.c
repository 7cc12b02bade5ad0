/* SPDX-License-Identifier: MIT */
#include "host/profile/record_kernel.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "fathom/symbolize.h"
#include "host/profile/perf_registers.h"
#include "host/space/target.h"
#include "host/symbolize/answers.h"
#include "host/syscalls/syscall_table.h"

/* Markers between the addresses of a call chain are above this (PERF_CONTEXT_MAX). */
#define FIRST_MARKER ((uint64_t)PERF_CONTEXT_MAX)

/* The module of the kernel's image, here and of the target; modules have other names. */
static const char image[] = "[kernel]";

/* Opens the kernel's symbols; they are read when the first is asked for. */
static void open_kernel(struct fathom_record_kernel *k)
{
	k->is_tried = true;
	if (fathom_target_open_kernel(k->session, NULL, &k->target, NULL)) {
		k->target = NULL;
		return;
	}
	if (fathom_view_begin(k->target, FATHOM_VIEW_PLACES, &k->view, NULL))
		k->view = NULL;
}

/* Asks for the function at @pc; *@ret is to be freed, NULL: nothing is known. FATHOM_E_MEMORY. */
static fathom_err ask(struct fathom_record_kernel *k, const struct fathom_pc *pc,
		      struct fathom_answers **ret)
{
	const struct fathom_batch_options o = { .flags = FATHOM_NAMES_ONLY, .kinds = &pc->kind };
	fathom_err err;

	*ret = NULL;
	if (!k->is_tried)
		open_kernel(k);
	if (!k->view)
		return FATHOM_OK;
	err = fathom_view_answer(k->view, &o, &pc->address, 1, ret, NULL);
	if (err)
		*ret = NULL;
	return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
}

fathom_err fathom_record_kernel_prepare(struct fathom_record_kernel *k)
{
	const struct fathom_pc any = { .kind = FATHOM_PC_EXACT };
	struct fathom_answers *answers;

	FATHOM_TRY(ask(k, &any, &answers));
	fathom_answers_free(answers);
	return FATHOM_OK;
}

/* Returns whether @a names what was at its address when the sample was taken. */
static bool is_of_then(const struct fathom_record_kernel *k, const struct fathom_answer *a)
{
	return a->symbol && (!k->is_past || (a->module && strcmp(a->module->path, image) == 0));
}

/* Finds the symbol of the code at @pc; FATHOM_TABLE_NONE: it has none. */
static fathom_err find_symbol(struct fathom_record_kernel *k, const struct fathom_pc *pc,
			      struct fathom_stack_table *table, uint32_t *ret)
{
	struct fathom_answers *answers;
	const struct fathom_answer *a;
	fathom_err err = ask(k, pc, &answers);

	*ret = FATHOM_TABLE_NONE;
	if (err || !answers)
		return err;
	a = fathom_answers_get(answers, 0);
	if (is_of_then(k, a)) {
		const struct fathom_profile_symbol symbol = {
			.name = { a->symbol, a->symbol_size },
			.linkage_name = { a->linkage_name, a->linkage_size },
			.source = a->source,
		};

		*ret = fathom_table_symbol(table, &symbol);
		err = *ret == FATHOM_TABLE_NONE ? FATHOM_E_MEMORY : FATHOM_OK;
	}
	fathom_answers_free(answers);
	return err;
}

static fathom_err location_of(struct fathom_record_kernel *k, const struct fathom_pc *pc,
			      struct fathom_stack_table *table, uint32_t *ret)
{
	const struct fathom_profile_module m = { .path = image,
						 .kind = FATHOM_PROFILE_MODULE_KERNEL };
	/* Bit 62 of an address in the kernel is set. */
	const uint64_t key = pc->address ^ (uint64_t)pc->kind << 62;
	struct fathom_profile_location l = { .pc = *pc };
	uint32_t *number = fathom_key_map_at(&k->places, key);
	uint32_t symbol;

	if (!number)
		return FATHOM_E_MEMORY;
	if (*number == FATHOM_KEY_NEW) {
		FATHOM_TRY(find_symbol(k, pc, table, &symbol));
		l.module = fathom_table_module(table, &m);
		l.trust = pc->kind == FATHOM_PC_RETURN ? FATHOM_TRUST_CFI : FATHOM_TRUST_REGISTERS;
		*number = l.module == FATHOM_TABLE_NONE ? FATHOM_KEY_NEW
							: fathom_table_location(table, &l, symbol);
	}
	*ret = *number;
	return *number == FATHOM_KEY_NEW ? FATHOM_E_MEMORY : FATHOM_OK;
}

fathom_err fathom_record_kernel_walk(struct fathom_record_kernel *k,
				     const struct fathom_perf_record *r,
				     struct fathom_stack_table *table, uint32_t caller,
				     uint32_t *ret)
{
	*ret = caller;
	for (uint64_t i = r->sample.n_kernel; i-- > 0;) {
		struct fathom_pc pc = { .kind = FATHOM_PC_EXACT };
		uint32_t location;

		memcpy(&pc.address, r->sample.kernel + 8 * i, sizeof pc.address);
		if (pc.address >= FIRST_MARKER)
			continue;
		/* The marker is the first, then the instruction that was interrupted. */
		if (i > 1)
			pc.kind = FATHOM_PC_RETURN;
		FATHOM_TRY(location_of(k, &pc, table, &location));
		*ret = fathom_table_node(table, *ret, location);
		if (!*ret)
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

/* Roles of functions between a program and the scheduler; entry i has ENTRIES + i. */
enum { NO_ROLE, DISK, IN_SYSCALL, FAULT, STOP, ENTRIES };

/* Functions whose names differ between versions and machines: x86 first, then arm64. */
static const struct {
	const char *name;
	uint32_t role;
} roles[] = {
	{ "io_schedule", DISK },
	{ "io_schedule_timeout", DISK },
	{ "jbd2_log_wait_commit", DISK }, /* ext4's journal is written by a thread of its own */
	{ "do_syscall_64", IN_SYSCALL },
	{ "do_int80_syscall_32", IN_SYSCALL },
	{ "do_fast_syscall_32", IN_SYSCALL },
	{ "el0_svc_common", IN_SYSCALL },
	{ "invoke_syscall", IN_SYSCALL },
	{ "asm_exc_page_fault", FAULT },
	{ "exc_page_fault", FAULT },
	{ "do_user_addr_fault", FAULT },
	{ "do_page_fault", FAULT },
	{ "do_mem_abort", FAULT },
	{ "do_signal_stop", STOP },
	{ "ptrace_stop", STOP },
};

/* Begins of names of functions that enter a system call. A tail call leaves ksys_read() alone. */
static const struct {
	const char *begin;
	uint16_t machine; /* EM_NONE: that of the thread */
} entries[] = {
	{ "__x64_sys_", EM_X86_64 },    { "__ia32_sys_", EM_386 }, { "__ia32_compat_sys_", EM_386 },
	{ "__arm64_sys_", EM_AARCH64 }, { "__se_sys_", EM_NONE },  { "__do_sys_", EM_NONE },
	{ "ksys_", EM_NONE },
};

/*
 * Writes the name of the system call that the kernel calls @name, of at most 31 bytes: newfstat()
 * is fstat, and futex_time32() is the futex of programs of 32 bits.
 */
static void name_syscall(uint32_t machine, const char *name, struct fathom_record_entry *ret)
{
	static const char *const ends[] = { "", "64", "_time32" };

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		const size_t n = strlen(name);
		const size_t m = strlen(ends[i]);

		if (n < m || strcmp(name + n - m, ends[i]) != 0)
			continue;
		(void)snprintf(ret->name, sizeof ret->name, "%.*s", (int)(n - m), name);
		if (fathom_syscall_by_name(machine, ret->name) >= 0)
			return;
		if (!strncmp(ret->name, "new", 3) &&
		    fathom_syscall_by_name(machine, ret->name + 3) >= 0) {
			memmove(ret->name, ret->name + 3, strlen(ret->name + 3) + 1);
			return;
		}
	}
	(void)snprintf(ret->name, sizeof ret->name, "%s", name);
}

/* Returns the role of the function @name; FATHOM_KEY_NEW without memory. */
static uint32_t find_role(struct fathom_record_kernel *k, uint32_t machine, const char *name)
{
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (strcmp(name, roles[i].name) == 0)
			return roles[i].role;
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
		const size_t n = strlen(entries[i].begin);
		struct fathom_record_entry entry;

		if (strncmp(name, entries[i].begin, n) != 0)
			continue;
		name_syscall(entries[i].machine ? entries[i].machine : machine, name + n, &entry);
		return fathom_array_push(&k->entries, entry) ? ENTRIES + (uint32_t)k->entries.n - 1
							     : FATHOM_KEY_NEW;
	}
	return NO_ROLE;
}

/* Finds the role of the function that holds @pc. FATHOM_E_MEMORY. */
static fathom_err role_of(struct fathom_record_kernel *k, uint32_t machine,
			  const struct fathom_pc *pc, uint32_t *ret)
{
	uint32_t *role = fathom_key_map_at(&k->roles, pc->address);
	struct fathom_answers *answers;
	const struct fathom_answer *a;

	if (!role)
		return FATHOM_E_MEMORY;
	if (*role == FATHOM_KEY_NEW) {
		FATHOM_TRY(ask(k, pc, &answers));
		a = answers ? fathom_answers_get(answers, 0) : NULL;
		*role = a && a->symbol ? find_role(k, machine, a->symbol) : NO_ROLE;
		fathom_answers_free(answers);
	}
	*ret = *role;
	return *ret == FATHOM_KEY_NEW ? FATHOM_E_MEMORY : FATHOM_OK;
}

/* Returns the text for a wait of @role. */
static const char *text_of(const struct fathom_record_kernel *k, uint32_t role)
{
	switch (role) {
	case NO_ROLE:
		return "kernel";
	case IN_SYSCALL:
		return "system call";
	case FAULT:
		return "page fault";
	case STOP:
		return "stopped";
	default:
		return k->entries.items[role - ENTRIES].name;
	}
}

fathom_err fathom_record_kernel_reason(struct fathom_record_kernel *k,
				       const struct fathom_perf_record *r, char *to, size_t size,
				       bool *ret_is_disk)
{
	struct fathom_registers registers = { 0 };
	uint32_t outermost = NO_ROLE;

	*ret_is_disk = false;
	(void)fathom_perf_registers_read(r->sample.registers, r->sample.missing, r->sample.abi,
					 &registers);
	for (uint64_t i = r->sample.n_kernel; i-- > 0;) {
		struct fathom_pc pc = { .kind = FATHOM_PC_RETURN };
		uint32_t role;

		memcpy(&pc.address, r->sample.kernel + 8 * i, sizeof pc.address);
		if (pc.address >= FIRST_MARKER)
			continue;
		FATHOM_TRY(role_of(k, registers.machine, &pc, &role));
		if (role == DISK)
			*ret_is_disk = true;
		/* A page fault within a system call is a part of the call. */
		else if (role && (outermost == NO_ROLE || outermost == IN_SYSCALL))
			outermost = role;
	}
	(void)snprintf(to, size, "[%s%s]", text_of(k, outermost), *ret_is_disk ? ": disk" : "");
	return FATHOM_OK;
}

void fathom_record_kernel_deinit(struct fathom_record_kernel *k)
{
	fathom_key_map_deinit(&k->roles);
	fathom_array_free(&k->entries);
	fathom_view_end(k->view);
	fathom_target_release(k->target);
	fathom_key_map_deinit(&k->places);
}
