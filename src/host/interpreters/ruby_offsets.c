/* SPDX-License-Identifier: MIT */
/*
 * Where the members of Ruby's structs are, by version: what offsetof() says in each version's
 * vm_core.h. No symbol says where the virtual machine is since 3.3: it is a variable of the
 * module, beside rb_cThread. A row is believed if the structures of the process agree with it: a
 * VM whose main thread is of that VM, and is what an object of class Thread has as its data.
 */
#include <string.h>

#include "host/interpreters/ruby.h"

static const struct fathom_ruby_offsets table[] = {
	{ .major = 2,
	  .minor = 7,
	  .main_thread = 192,
	  .list = 312,
	  .thread_vm = 24,
	  .thread_ec = 32,
	  .pthread = 72,
	  .ec_thread = 56,
	  .ec_start = 152,
	  .frame_size = 56,
	  .lines = 120,
	  .line_size = 8,
	  .text = 16 },
	{ .major = 3,
	  .minor = 0,
	  .main_thread = 40,
	  .list = 8,
	  .ractor_node = 568,
	  .ractor_list = 304,
	  .thread_vm = 32,
	  .thread_ec = 40,
	  .pthread = 80,
	  .ec_thread = 56,
	  .ec_start = 152,
	  .frame_size = 56,
	  .lines = 120,
	  .line_size = 8,
	  .text = 16 },
	{ .major = 3,
	  .minor = 1,
	  .main_thread = 40,
	  .list = 8,
	  .ractor_node = 568,
	  .ractor_list = 304,
	  .thread_vm = 32,
	  .thread_ec = 40,
	  .pthread = 80,
	  .native_id = 88,
	  .ec_thread = 48,
	  .ec_start = 144,
	  .frame_size = 64,
	  .frame_return = 56,
	  .lines = 120,
	  .line_size = 12,
	  .text = 16 },
	{ .major = 3,
	  .minor = 2,
	  .main_thread = 40,
	  .list = 8,
	  .ractor_node = 568,
	  .ractor_list = 304,
	  .thread_vm = 32,
	  .thread_ec = 48,
	  .thread_own = 40,
	  .pthread = 8,
	  .native_id = 16,
	  .ec_thread = 48,
	  .ec_start = 152,
	  .frame_size = 64,
	  .frame_return = 56,
	  .lines = 112,
	  .line_size = 12,
	  .text = 24 },
	{ .major = 3,
	  .minor = 3,
	  .main_thread = 40,
	  .list = 8,
	  .ractor_node = 432,
	  .ractor_list = 256,
	  .thread_vm = 32,
	  .thread_ec = 48,
	  .thread_own = 40,
	  .pthread = 16,
	  .native_id = 24,
	  .ec_thread = 48,
	  .ec_start = 152,
	  .frame_size = 56,
	  .frame_return = 48,
	  .lines = 112,
	  .line_size = 12,
	  .text = 24 },
	{ .major = 3,
	  .minor = 4,
	  .main_thread = 40,
	  .list = 8,
	  .ractor_node = 432,
	  .ractor_list = 256,
	  .thread_vm = 32,
	  .thread_ec = 48,
	  .thread_own = 40,
	  .pthread = 16,
	  .native_id = 24,
	  .ec_thread = 48,
	  .ec_start = 144,
	  .frame_size = 56,
	  .frame_return = 48,
	  .lines = 112,
	  .line_size = 12,
	  .text = 24,
	  .class_path = 152,
	  .class_of = 128,
	  .class_bits = 149 },
};

/* Of rb_thread_t: its object; of an object with data: the data. */
enum { THREAD_SELF = 16, OBJECT_CLASS = 8, OBJECT_DATA = 32 };

/* Bytes beside rb_cThread that are looked at first; of a module's variables at most. */
enum { NEAR = 4096, MOST_VARIABLES = 1 << 24, PAGE = 4096 };

/* ELF's PT_LOAD, and PF_W. */
enum { LOADED = 1, WRITABLE = 2 };

/* Names whose numbers are their characters; how many names there are at least, and at most. */
static const char known_names[] = { '+', '-', '*', '/', '<', '!' };
enum { LEAST_NAMES = 128, MOST_NAMES = 1 << 26 };

void fathom_ruby_refresh(struct fathom_runtime_found *f)
{
	struct fathom_ruby *r = f->own;

	fathom_runtime_forget(r->pages);
}

bool fathom_ruby_number(const struct fathom_runtime_found *f, uint64_t avma, uint8_t size,
			uint64_t *ret)
{
	struct fathom_ruby *r = f->own;

	return fathom_runtime_paged(f, r->pages, avma, size, ret);
}

bool fathom_ruby_is_thread(const struct fathom_runtime_found *f, uint64_t thread)
{
	const struct fathom_ruby *r = f->own;
	uint64_t vm;
	uint64_t self;
	uint64_t flags;
	uint64_t data;

	return fathom_ruby_word(f, thread + r->offsets->thread_vm, &vm) && vm == r->vm &&
	       fathom_ruby_word(f, thread + THREAD_SELF, &self) &&
	       fathom_ruby_is(f, self, RUBY_DATA, &flags) &&
	       fathom_ruby_word(f, self + OBJECT_DATA, &data) && data == thread;
}

/* Returns whether @vm is the VM: its main thread is an object of class Thread. */
static bool is_vm(struct fathom_runtime_found *f, uint64_t vm)
{
	struct fathom_ruby *r = f->own;
	const uint64_t old = r->vm;
	uint64_t class_now;
	uint64_t class_wanted;
	uint64_t thread;
	uint64_t self;

	r->vm = vm;
	if (fathom_ruby_word(f, vm + r->offsets->main_thread, &thread) && thread &&
	    thread % 8 == 0 && fathom_ruby_is_thread(f, thread) &&
	    fathom_ruby_word(f, thread + THREAD_SELF, &self) &&
	    fathom_ruby_word(f, self + OBJECT_CLASS, &class_now) &&
	    fathom_ruby_word(f, r->thread_class, &class_wanted) && class_now == class_wanted)
		return true;
	r->vm = old;
	return false;
}

/* Returns whether @word can be the address of something that was allocated. */
static bool is_pointer(uint64_t word)
{
	return word >= 0x10000 && word % 8 == 0 && word >> 47 == 0;
}

/* Looks for something in the variables at [@low, @high): calls @fn for each word. */
static bool scan(struct fathom_runtime_found *f, uint64_t low, uint64_t high,
		 bool (*fn)(struct fathom_runtime_found *f, uint64_t at, uint64_t word,
			    uint64_t *ret),
		 uint64_t *ret)
{
	uint8_t bytes[PAGE];

	for (low = (low + 7) & ~UINT64_C(7); low < high; low = (low | (PAGE - 1)) + 1) {
		const uint64_t left =
			((low | (PAGE - 1)) < high - 1 ? (low | (PAGE - 1)) + 1 : high) - low;
		const size_t n = f->memory->read(f->memory->data, low, bytes, (size_t)left);

		for (size_t i = 0; i + 8 <= n; i += 8)
			if (fn(f, low + i, load_u64(bytes + i, f->swap), ret))
				return true;
	}
	return false;
}

/* Does the same with all variables of the module. */
static bool scan_all(struct fathom_runtime_found *f,
		     bool (*fn)(struct fathom_runtime_found *f, uint64_t at, uint64_t word,
				uint64_t *ret),
		     uint64_t *ret)
{
	const struct fathom_image *image = &f->module->main->image;
	struct fathom_segment s;

	for (uint32_t i = 0; fathom_image_segment(image, i, &s); i++)
		if (s.type == LOADED && s.flags & WRITABLE && s.memsz <= MOST_VARIABLES &&
		    scan(f, s.vaddr + f->bias, s.vaddr + f->bias + s.memsz, fn, ret))
			return true;
	return false;
}

static bool find_vm(struct fathom_runtime_found *f, uint64_t at, uint64_t word, uint64_t *ret)
{
	(void)at;
	if (!is_pointer(word) || !is_vm(f, word))
		return false;
	*ret = word;
	return true;
}

/* Finds the VM: by its symbol, else beside rb_cThread, else among all variables. */
static bool look_for_vm(struct fathom_runtime_found *f)
{
	struct fathom_ruby *r = f->own;
	uint64_t at;
	uint64_t vm;

	fathom_ruby_refresh(f);
	if (f->module && fathom_runtime_symbol(f, "ruby_current_vm_ptr", &at) &&
	    fathom_ruby_word(f, at, &vm) && vm && is_vm(f, vm))
		return true;
	return scan(f, r->thread_class - NEAR, r->thread_class + NEAR, find_vm, &vm) ||
	       (f->module && scan_all(f, find_vm, &vm));
}

void fathom_ruby_find_offsets(struct fathom_runtime_found *f, uint32_t major, uint32_t minor)
{
	struct fathom_ruby *r = f->own;

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].major == major && table[i].minor == minor)
			r->offsets = &table[i];
	if (!r->offsets)
		f->why = "its frames are known of 2.7 and 3.0 to 3.4";
	else if (!look_for_vm(f))
		f->why = "its threads have another layout than those of this version";
}

/* Finds where the @i-th word of the array at @array is; false if it is none, or shorter. */
static bool find_item(const struct fathom_runtime_found *f, uint64_t array, uint64_t i,
		      uint64_t *ret)
{
	uint64_t flags;
	uint64_t size;
	uint64_t items;

	if (!fathom_ruby_is(f, array, RUBY_ARRAY, &flags) || flags & RUBY_EMBEDDED ||
	    !fathom_ruby_word(f, array + 16, &size) || i >= size ||
	    !fathom_ruby_word(f, array + 32, &items))
		return false;
	return fathom_ruby_word(f, items + 8 * i, ret);
}

/* Returns whether @names is the array of all names: those of operators are where they belong. */
static bool is_names(const struct fathom_runtime_found *f, uint64_t names)
{
	const struct fathom_ruby *r = f->own;
	uint64_t of_class = 1;
	uint64_t first;
	uint64_t text;
	uint64_t flags;

	/* No program sees it: it has no class. */
	if (!fathom_ruby_word(f, names + OBJECT_CLASS, &of_class) || of_class ||
	    !find_item(f, names, 0, &first))
		return false;
	for (size_t i = 0; i < sizeof known_names; i++) {
		char c[2];

		if (!find_item(f, first, 2 * (uint64_t)known_names[i], &text) ||
		    !fathom_ruby_is(f, text, RUBY_STRING, &flags) || flags & RUBY_EMBEDDED ||
		    !fathom_reader_read(f->memory, text + r->offsets->text, c, sizeof c) ||
		    c[0] != known_names[i] || c[1])
			return false;
	}
	return true;
}

/* Looks whether the variable at @at is the last number of a name, and @word is it. */
static bool find_names(struct fathom_runtime_found *f, uint64_t at, uint64_t word, uint64_t *ret)
{
	uint64_t table_of_names;
	uint64_t names;

	if (word < LEAST_NAMES || word >= MOST_NAMES ||
	    !fathom_ruby_word(f, at + 8, &table_of_names) || !is_pointer(table_of_names) ||
	    !fathom_ruby_word(f, at + 16, &names) || !is_pointer(names) || !is_names(f, names))
		return false;
	*ret = names;
	return true;
}

bool fathom_ruby_find_names(struct fathom_runtime_found *f, uint64_t *ret)
{
	struct fathom_ruby *r = f->own;

	if (!r->has_looked && f->module)
		(void)scan_all(f, find_names, &r->names);
	r->has_looked = true;
	*ret = r->names;
	return r->names != 0;
}
