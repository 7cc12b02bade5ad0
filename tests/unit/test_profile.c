/* SPDX-License-Identifier: MIT */
/* Profiles that are written by hand, and what is read of them. */
#include "unit.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "profile_in_memory.h"

static uint32_t add_thread(struct fathom_profile_writer *w, int32_t pid, int32_t tid, uint64_t ns,
			   const char *name)
{
	const struct fathom_profile_thread t = {
		.pid = pid, .tid = tid, .parent = 3, .ns = ns, .name = name, .process = ""
	};

	return fathom_profile_write_thread(w, &t, ns == 5 ? 1 : ns == 8 ? 0 : UINT32_MAX);
}

static uint32_t add_location(struct fathom_profile_writer *w, uint32_t module, uint64_t address,
			     uint8_t kind, uint32_t symbol)
{
	const struct fathom_profile_location l = { .pc = { .address = address, .kind = kind },
						   .module = module,
						   .trust = FATHOM_TRUST_CFI,
						   .is_signal_return = symbol != UINT32_MAX };

	return fathom_profile_write_location(w, &l, symbol);
}

static uint32_t add_node(struct fathom_profile_writer *w, uint32_t caller, uint32_t location)
{
	const struct fathom_profile_node n = { caller, location };

	return fathom_profile_write_node(w, &n);
}

static void add_sample(struct fathom_profile_writer *w, uint64_t ns, uint32_t thread, uint32_t node,
		       uint64_t weight, uint8_t part, uint8_t stop)
{
	const struct fathom_profile_sample s = { .ns = ns,
						 .weight = weight,
						 .thread = thread,
						 .node = node,
						 .part = part,
						 .stop = stop };

	fathom_profile_write_sample(w, &s);
}

static struct fathom_str str(const char *s)
{
	return (struct fathom_str){ s, (uint32_t)strlen(s) };
}

/* Writes a profile with something of everything. */
static void write_all(struct fathom_profile_writer *w)
{
	static const uint8_t id[] = { 0xab, 0x00, 0xcd };
	const struct fathom_profile_module demo = {
		.path = "/bin/demo", .build_id = id, .build_id_size = 3, .kind = 1
	};
	const struct fathom_profile_module jit = { .path = "[jit]",
						   .kind = FATHOM_PROFILE_MODULE_JIT };
	const struct fathom_profile_symbol f = { .name = str("f(int)"),
						 .linkage_name = str("_Z1fi"),
						 .file = str("/a.js"),
						 .line = 300,
						 .source = FATHOM_SOURCE_JITDUMP };
	uint32_t main_node;

	begin_file(w);
	fathom_profile_write_about(w, "command", "demo --all");
	fathom_profile_write_about(w, "event", "task-clock");
	fathom_profile_write_about(w, "unit", "ns");
	fathom_profile_write_about(w, "frequency", "997");
	fathom_profile_write_about(w, "started", "1700000000123456789");
	fathom_profile_write_about(w, "kernel-hidden", "1");
	fathom_profile_write_about(w, "of-a-later-version", "?");
	assert_int_equal(fathom_profile_write_cgroup(w, "/a"), 0);
	assert_int_equal(fathom_profile_write_cgroup(w, "/b"), 1);
	assert_int_equal(add_thread(w, 70, 71, 5, "worker"), 0);
	assert_int_equal(add_thread(w, 70, 70, 6, "sh"), 1);
	assert_int_equal(add_thread(w, 70, 70, 7, "demo"), 2);
	assert_int_equal(add_thread(w, 70, 72, 8, "worker"), 3);
	assert_int_equal(fathom_profile_write_module(w, &demo), 0);
	assert_int_equal(fathom_profile_write_module(w, &jit), 1);
	assert_int_equal(fathom_profile_write_symbol(w, &f), 0);
	(void)add_location(w, 0, 0x1234567890, FATHOM_PC_RETURN, UINT32_MAX);
	(void)add_location(w, 1, 0x40, FATHOM_PC_EXACT, 0);
	(void)add_location(w, UINT32_MAX, UINT64_MAX, FATHOM_PC_EXACT, UINT32_MAX);
	main_node = add_node(w, 0, 0);
	assert_int_equal(main_node, 1);
	assert_int_equal(add_node(w, main_node, 1), 2);
	assert_int_equal(add_node(w, 0, 2), 3);
	add_sample(w, 1000, 0, 2, 300, FATHOM_PROFILE_SAMPLED, FATHOM_STOP_ENTRY);
	add_sample(w, 900, 2, 3, 20, FATHOM_PROFILE_SAMPLED, FATHOM_STOP_NO_RULE);
	fathom_profile_write_lost(w, 950, 7);
	fathom_profile_write_lost(w, 960, 2);
	fathom_profile_write_throttled(w, 970);
	add_sample(w, 2000, 3, 1, 5, FATHOM_PROFILE_KERNEL_HIDDEN, FATHOM_STOP_ENTRY);
	add_sample(w, 2000, 1, 0, 1, FATHOM_PROFILE_UNSAMPLED, FATHOM_STOP_NONE);
	fathom_profile_write_end(w, 3000);
	end_file(w);
}

static struct fathom_profile *opened(void)
{
	struct fathom_profile *p = NULL;
	struct fathom_errinfo info;
	char text[512];

	if (fathom_profile_open(session, path, &p, &info)) {
		(void)fathom_errinfo_format(&info, text, sizeof text);
		fail_msg("%s", text);
	}
	return p;
}

static void its_definitions_are_read(void **state)
{
	struct fathom_profile_writer w = { 0 };
	struct fathom_profile *p;
	const struct fathom_profile_thread *threads;
	const struct fathom_profile_module *modules;
	const struct fathom_profile_location *l;
	const struct fathom_profile_node *nodes;
	size_t n;

	(void)state;
	write_all(&w);
	p = opened();
	threads = fathom_profile_threads(p, &n);
	assert_int_equal(n, 4);
	assert_int_equal(threads[0].pid, 70);
	assert_int_equal(threads[0].tid, 71);
	assert_int_equal(threads[0].parent, 3);
	assert_int_equal(threads[3].ns, 8);
	assert_string_equal(threads[3].name, "worker");
	assert_string_equal(threads[0].cgroup, "/b");
	assert_string_equal(threads[1].cgroup, "");
	assert_string_equal(threads[3].cgroup, "/a");
	/* The process is called after its first thread, which is renamed. */
	assert_string_equal(threads[0].process, "demo");
	assert_string_equal(threads[1].process, "sh");
	assert_string_equal(threads[2].process, "demo");
	assert_string_equal(threads[3].process, "demo");
	modules = fathom_profile_modules(p, &n);
	assert_int_equal(n, 2);
	assert_string_equal(modules[0].path, "/bin/demo");
	assert_int_equal(modules[0].kind, FATHOM_PROFILE_MODULE_FILE);
	assert_int_equal(modules[0].build_id_size, 3);
	assert_memory_equal(modules[0].build_id, "\xab\x00\xcd", 3);
	assert_null(modules[1].build_id);
	l = fathom_profile_locations(p, &n);
	assert_int_equal(n, 3);
	assert_int_equal(l[0].module, 0);
	assert_int_equal(l[0].pc.address, 0x1234567890);
	assert_int_equal(l[0].pc.kind, FATHOM_PC_RETURN);
	assert_int_equal(l[0].trust, FATHOM_TRUST_CFI);
	assert_int_equal(l[0].is_signal_return, 0);
	assert_null(l[0].answer->symbol);
	assert_string_equal(l[0].answer->module->path, "/bin/demo");
	assert_int_equal(l[1].is_signal_return, 1);
	assert_string_equal(l[1].answer->symbol, "f(int)");
	assert_string_equal(l[1].answer->linkage_name, "_Z1fi");
	assert_int_equal(l[1].answer->source, FATHOM_SOURCE_JITDUMP);
	assert_string_equal(l[1].answer->frame->file, "/a.js");
	assert_int_equal(l[1].answer->frame->line, 300);
	assert_int_equal(l[2].module, UINT32_MAX);
	assert_true(l[2].pc.address == UINT64_MAX);
	assert_int_equal(l[2].answer->reason, FATHOM_REASON_NO_FILE);
	nodes = fathom_profile_nodes(p, &n);
	assert_int_equal(n, 4);
	assert_int_equal(nodes[1].caller, 0);
	assert_int_equal(nodes[2].caller, 1);
	assert_int_equal(nodes[2].location, 1);
	fathom_profile_free(p);
}

static void its_info_sums_up(void **state)
{
	struct fathom_profile_writer w = { 0 };
	struct fathom_profile *p;
	const struct fathom_profile_info *info;

	(void)state;
	write_all(&w);
	p = opened();
	info = fathom_profile_get_info(p);
	assert_string_equal(info->command, "demo --all");
	assert_string_equal(info->event, "task-clock");
	assert_string_equal(info->unit, "ns");
	assert_string_equal(info->method, "");
	assert_int_equal(info->frequency, 997);
	assert_int_equal(info->is_complete, 1);
	assert_int_equal(info->is_kernel_hidden, 1);
	assert_int_equal(info->started, 1700000000123456789);
	assert_int_equal(info->duration_ns, 3000);
	assert_int_equal(info->weight, 326);
	assert_int_equal(info->n_samples, 4);
	assert_int_equal(info->n_stacks, 3);
	assert_int_equal(info->n_whole, 2);
	assert_int_equal(info->lost, 9);
	assert_int_equal(info->throttled, 1);
	fathom_profile_free(p);
}

struct samples {
	size_t n;
	size_t most;
	struct fathom_profile_sample items[8];
};

static int note(void *data, const struct fathom_profile_sample *s)
{
	struct samples *samples = data;

	samples->items[samples->n++] = *s;
	return samples->n == samples->most;
}

static void its_samples_are_read_anew(void **state)
{
	struct fathom_profile_writer w = { 0 };
	struct fathom_profile *p;

	(void)state;
	write_all(&w);
	p = opened();
	for (int turn = 0; turn < 2; turn++) {
		struct samples s = { .most = 8 };

		assert_int_equal(fathom_profile_each_sample(p, note, &s, NULL), FATHOM_OK);
		assert_int_equal(s.n, 4);
		assert_int_equal(s.items[0].ns, 1000);
		assert_int_equal(s.items[0].weight, 300);
		assert_int_equal(s.items[0].node, 2);
		assert_int_equal(s.items[0].stop, FATHOM_STOP_ENTRY);
		assert_int_equal(s.items[1].ns, 900);
		assert_int_equal(s.items[1].thread, 2);
		assert_int_equal(s.items[1].stop, FATHOM_STOP_NO_RULE);
		assert_int_equal(s.items[2].part, FATHOM_PROFILE_KERNEL_HIDDEN);
		assert_int_equal(s.items[3].part, FATHOM_PROFILE_UNSAMPLED);
		assert_int_equal(s.items[3].ns, 2000);
	}
	{
		struct samples s = { .most = 2 };

		assert_int_equal(fathom_profile_each_sample(p, note, &s, NULL), FATHOM_OK);
		assert_int_equal(s.n, 2);
	}
	fathom_profile_free(p);
}

/* A profile that was cut is one, from its magic on; it has as many samples as are whole. */
static void every_prefix_is_read(void **state)
{
	struct fathom_profile_writer w = { 0 };
	uint64_t n_before = 4;
	uint64_t size;

	(void)state;
	write_all(&w);
	size = w.bytes;
	assert_true(size > 200 && size < 400);
	for (uint64_t cut = size - 1; cut; cut--) {
		struct fathom_profile *p = NULL;
		fathom_err err;

		assert_int_equal(ftruncate(file, (off_t)cut), 0);
		err = fathom_profile_open(session, path, &p, NULL);
		assert_int_equal(err, cut < 8 ? FATHOM_E_FORMAT : FATHOM_OK);
		if (!err) {
			const struct fathom_profile_info *info = fathom_profile_get_info(p);

			assert_int_equal(info->is_complete, 0);
			assert_true(info->n_samples <= n_before);
			n_before = info->n_samples;
			assert_int_equal(info->duration_ns, n_before == 0   ? 0
							    : n_before <= 2 ? 1000
									    : 2000);
		}
		fathom_profile_free(p);
	}
	assert_int_equal(n_before, 0);
}

/* Appends @n bytes, END and a sample to a whole profile without its END, and returns the error. */
static fathom_err with_bytes(const char *bytes, size_t n)
{
	struct fathom_profile_writer w = { 0 };
	struct fathom_profile *p = NULL;
	struct fathom_errinfo info = { .err = FATHOM_OK };
	fathom_err err;

	write_all(&w);
	/* A tag, a size and two bytes of a number. */
	assert_int_equal(ftruncate(file, (off_t)w.bytes - 4), 0);
	assert_int_equal(lseek(file, 0, SEEK_END), (off_t)w.bytes - 4);
	assert_true(append(NULL, bytes, n));
	assert_true(append(NULL, "\x0a\x01\x09", 3));
	err = fathom_profile_open(session, path, &p, &info);
	if (err) {
		assert_int_equal(info.offset, w.bytes - 4);
		assert_non_null(strstr(info.file, "/fd/"));
	} else {
		assert_int_equal(fathom_profile_get_info(p)->duration_ns, 9);
	}
	fathom_profile_free(p);
	return err;
}

static void impossible_numbers_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		fathom_err err;
	} cases[] = {
		{ "", 0, FATHOM_OK },
		{ "\x63\x02xy", 4, FATHOM_OK },              /* an unknown tag */
		{ "\x09\x03\x01xy", 5, FATHOM_OK },          /* bytes after what is known */
		{ "\x06\x02\x03\x02", 4, FATHOM_OK },        /* a node */
		{ "\x06\x02\x04\x00", 4, FATHOM_E_CORRUPT }, /* which calls itself */
		{ "\x06\x02\x00\x03", 4, FATHOM_E_CORRUPT }, /* at no location */
		{ "\x05\x05\x03\x00\x00\x00\x00", 7, FATHOM_E_CORRUPT }, /* in no module */
		{ "\x05\x05\x01\x00\x02\x00\x00", 7, FATHOM_E_CORRUPT }, /* kind of pc */
		{ "\x05\x05\x01\x00\x00\x00\x02", 7, FATHOM_E_CORRUPT }, /* symbol */
		{ "\x07\x05\x10\x00\x03\x01\x01", 7, FATHOM_OK },
		{ "\x07\x05\x10\x00\x04\x01\x01", 7, FATHOM_E_CORRUPT },     /* no thread */
		{ "\x07\x05\x10\x00\x00\x04\x01", 7, FATHOM_E_CORRUPT },     /* no node */
		{ "\x07\x06\x10\xff\x7f\x00\x01\x01", 8, FATHOM_E_CORRUPT }, /* before the begin */
		{ "\x07\x0e\x10\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 16,
		  FATHOM_E_CORRUPT },                                /* the sum has 65 bits */
		{ "\x07\x04\x10\x00\x00\x01", 6, FATHOM_E_CORRUPT }, /* without a weight */
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, FATHOM_E_CORRUPT },
		{ "\x03\x05\x01\x00\x81\x02x", 7, FATHOM_E_CORRUPT }, /* a build-id of 257 bytes */
		{ "\x01\x04\x81\x80\x04x", 6, FATHOM_E_CORRUPT },     /* a text of 65,537 */
		{ "\x02\x06\x01\x01\x00\x00\x01x", 8, FATHOM_OK }, /* a thread without a cgroup, */
		{ "\x02\x07\x01\x01\x00\x00\x01x\x02", 9, FATHOM_OK },        /* with one, */
		{ "\x02\x08\x01\x01\x00\x00\x01x\x02?", 10, FATHOM_OK },      /* and more */
		{ "\x02\x07\x01\x01\x00\x00\x01x\x03", 9, FATHOM_E_CORRUPT }, /* no cgroup */
		{ "\x0b\x01\x05", 3, FATHOM_E_CORRUPT }, /* a cgroup's text is cut */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (with_bytes(cases[i].bytes, cases[i].n) != cases[i].err)
			fail_msg("case %zu", i);
}

static void other_files_are_refused(void **state)
{
	static const char *const texts[] = { "\x7f"
					     "fprof2\n",
					     "\x7f"
					     "ELF....",
					     "\x7f"
					     "ftrace\n" };
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct fathom_profile *p = NULL;
		struct fathom_errinfo info;

		assert_int_equal(ftruncate(file, 0), 0);
		assert_int_equal(lseek(file, 0, SEEK_SET), 0);
		assert_true(append(NULL, texts[i], strlen(texts[i])));
		assert_int_equal(fathom_profile_open(session, path, &p, &info), FATHOM_E_FORMAT);
		assert_int_equal(!strstr(info.what, "newer version"), i != 0);
	}
}

/* Definitions do not fit a budget that is smaller than they are. */
static void the_budget_bounds_it(void **state)
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = FATHOM_NO_CACHE,
						.memory_budget = 1 << 16 };
	struct fathom_profile_writer w = { 0 };
	struct fathom *small;
	struct fathom_profile *p = NULL;
	struct fathom_usage before;
	struct fathom_usage after;
	struct fathom_errinfo info;

	(void)state;
	begin_file(&w);
	(void)add_location(&w, UINT32_MAX, 1, FATHOM_PC_EXACT, UINT32_MAX);
	for (uint32_t i = 0; i < 20000; i++)
		(void)add_node(&w, i, 0);
	end_file(&w);
	assert_int_equal(fathom_create(&options, &small, NULL), FATHOM_OK);
	fathom_get_usage(small, &before);
	assert_int_equal(fathom_profile_open(small, path, &p, &info), FATHOM_E_LIMIT);
	assert_int_equal(info.cause, FATHOM_CAUSE_BUDGET);
	fathom_get_usage(small, &after);
	assert_int_equal(before.memory_used, after.memory_used);
	fathom_destroy(small);
	fathom_profile_free(opened());
}

static void parts_have_words(void **state)
{
	(void)state;
	assert_string_equal(fathom_profile_part_name(FATHOM_PROFILE_SAMPLED), "sampled");
	assert_string_equal(fathom_profile_part_name(FATHOM_PROFILE_KERNEL_HIDDEN),
			    "kernel-hidden");
	assert_string_equal(fathom_profile_part_name(FATHOM_PROFILE_UNSAMPLED), "unsampled");
	assert_string_equal(fathom_profile_part_name(FATHOM_PROFILE_WAITING), "waiting");
	assert_string_equal(fathom_profile_part_name(FATHOM_PROFILE_RUNNABLE), "runnable");
	assert_string_equal(fathom_profile_part_name((enum fathom_profile_part)9), "");
}

/* A function of this program, which is looked up in its file. */
__attribute__((noinline, used)) static int looked_up(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static int note_bias(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(uint64_t *)data = info->dlpi_addr;
	return 1;
}

/* One location in a module, as a profile has it. */
struct named {
	struct fathom_profile_module module;
	uint64_t address;
	struct fathom_profile_resolve_options options;
	const char *symbol; /* it is expected to have; NULL: none, because of reason */
	enum fathom_reason reason;
};

/* Asserts that the place has the same name without a profile. */
static void assert_named_alone(const struct named *named)
{
	const struct fathom_pc pc = { .address = named->address };
	struct fathom_answers *answers = NULL;
	struct fathom_errinfo info;
	const fathom_err err = fathom_profile_name_module(session, &named->module, &named->options,
							  &pc, 1, &answers, &info);

	if (named->symbol) {
		assert_int_equal(err, FATHOM_OK);
		assert_string_equal(fathom_answers_get(answers, 0)->symbol, named->symbol);
	} else {
		assert_int_equal(err, FATHOM_E_NOT_FOUND);
		assert_string_equal(info.file, named->module.path);
		assert_non_null(strstr(info.what, named->reason == FATHOM_REASON_BUILD_ID_MISMATCH
							  ? "another build"
							  : "no file"));
	}
	fathom_answers_free(answers);
}

static void assert_named(const struct named *named)
{
	assert_named_alone(named);
	struct fathom_profile_writer w = { 0 };
	struct fathom_profile *p;
	const struct fathom_answer *a;
	size_t n;

	begin_file(&w);
	(void)fathom_profile_write_module(&w, &named->module);
	(void)add_location(&w, 0, named->address, FATHOM_PC_EXACT, UINT32_MAX);
	fathom_profile_write_end(&w, 1);
	end_file(&w);
	p = opened();
	/* The second time, all is found anew. */
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(fathom_profile_resolve(p, &named->options, NULL), FATHOM_OK);
		a = fathom_profile_locations(p, &n)->answer;
		if (named->symbol) {
			assert_non_null(a->symbol);
			assert_string_equal(a->symbol, named->symbol);
			assert_int_equal(a->offset, 0);
		} else {
			assert_null(a->symbol);
			assert_int_equal(a->reason, named->reason);
			assert_string_equal(a->module->path, named->module.path);
		}
	}
	fathom_profile_free(p);
}

static void locations_are_named_by_their_files(void **state)
{
	struct named n = { .module.kind = FATHOM_PROFILE_MODULE_FILE,
			   .options.size = sizeof n.options,
			   .symbol = "looked_up" };
	struct fathom_target *target;
	struct fathom_target_info info;
	char exe[4096];
	char folder[] = "/tmp/profile.XXXXXX";
	char link[64];
	static const uint8_t other[20] = { 1 };
	uint64_t bias = 0;

	(void)state;
	assert_non_null(realpath("/proc/self/exe", exe));
	assert_int_equal(fathom_target_open_file(session, exe, NULL, &target, NULL), FATHOM_OK);
	fathom_target_get_info(target, &info);
	(void)dl_iterate_phdr(note_bias, &bias);
	n.address = (uintptr_t)looked_up - bias;
	n.module.path = exe;
	n.module.build_id = info.build_id;
	n.module.build_id_size = info.build_id_size;
	assert_named(&n);
	/* Below a sysroot. */
	assert_non_null(mkdtemp(folder));
	(void)snprintf(link, sizeof link, "%s/there", folder);
	assert_int_equal(symlink(exe, link), 0);
	n.module.path = "/there";
	n.options.sysroot = folder;
	assert_named(&n);
	assert_int_equal(unlink(link), 0);
	n.symbol = NULL;
	n.reason = FATHOM_REASON_NO_FILE;
	assert_named(&n);
	assert_int_equal(rmdir(folder), 0);
	/* Another build of it, and one that had no build-id. */
	n.options.sysroot = NULL;
	n.module.path = exe;
	n.module.build_id = other;
	n.module.build_id_size = sizeof other;
	n.reason = FATHOM_REASON_BUILD_ID_MISMATCH;
	assert_named(&n);
	n.module.build_id = NULL;
	n.module.build_id_size = 0;
	assert_named(&n);
	/* These are no paths of files. */
	n.module.path = "relative";
	n.reason = FATHOM_REASON_NO_FILE;
	assert_named(&n);
	fathom_target_release(target);
	assert_int_equal(looked_up(1), 2);
}

/* A file that only a debug directory has, by its build-id. */
static void debug_directories_are_searched(void **state)
{
	char folder[] = "/tmp/profile.XXXXXX";
	const char *const dirs[] = { folder, NULL };
	struct named n = { .module = { .path = "/no/such/file", .kind = 1 },
			   .options = { .size = sizeof n.options, .debug_dirs = dirs },
			   .symbol = "looked_up" };
	struct fathom_target *target;
	struct fathom_target_info info;
	char exe[4096];
	char all[64];
	char one[72];
	char link[256];
	uint64_t bias = 0;

	(void)state;
	assert_non_null(realpath("/proc/self/exe", exe));
	assert_int_equal(fathom_target_open_file(session, exe, NULL, &target, NULL), FATHOM_OK);
	fathom_target_get_info(target, &info);
	(void)dl_iterate_phdr(note_bias, &bias);
	n.address = (uintptr_t)looked_up - bias;
	n.module.build_id = info.build_id;
	n.module.build_id_size = info.build_id_size;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(all, sizeof all, "%s/.build-id", folder);
	(void)snprintf(one, sizeof one, "%s/%02x", all, info.build_id[0]);
	(void)snprintf(link, sizeof link, "%s/", one);
	for (uint32_t i = 1; i < info.build_id_size; i++)
		(void)snprintf(link + strlen(link), 3, "%02x", info.build_id[i]);
	assert_int_equal(mkdir(all, 0755), 0);
	assert_int_equal(mkdir(one, 0755), 0);
	assert_int_equal(symlink(exe, link), 0);
	assert_named(&n);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(one), 0);
	assert_int_equal(rmdir(all), 0);
	assert_int_equal(rmdir(folder), 0);
	fathom_target_release(target);
}

/* Finds a function of the vDSO that starts at the address whose answer is @ret. */
static bool find_vdso(const struct fathom_answers *answers, struct fathom_answer *ret)
{
	for (size_t i = 0; i < fathom_answers_count(answers); i++) {
		*ret = *fathom_answers_get(answers, i);
		if (ret->symbol && !ret->offset && ret->module && ret->module->build_id)
			return true;
	}
	return false;
}

static void the_vdso_is_named_by_its_own(void **state)
{
	const uint64_t base = getauxval(AT_SYSINFO_EHDR);
	struct fathom_answers *answers;
	struct fathom_target *target;
	struct fathom_answer a = { .symbol = NULL };
	uint64_t addresses[4096];

	(void)state;
	if (!base)
		skip();
	for (size_t i = 0; i < 4096; i++)
		addresses[i] = base + i;
	assert_int_equal(fathom_target_open_self(session, NULL, &target, NULL), FATHOM_OK);
	assert_int_equal(fathom_symbolize(target, NULL, addresses, NULL, 4096, &answers, NULL),
			 FATHOM_OK);
	assert_true(find_vdso(answers, &a));
	{
		struct named n = { .module = { .path = "[vdso]",
					       .kind = FATHOM_PROFILE_MODULE_VDSO,
					       .build_id = a.module->build_id,
					       .build_id_size = a.module->build_id_size },
				   .address = a.module_address,
				   .options.size = sizeof n.options,
				   .symbol = a.symbol,
				   .reason = FATHOM_REASON_NO_FILE };
		const uint8_t other[20] = { 2 };

		assert_named(&n);
		n.module.build_id = other;
		n.symbol = NULL;
		assert_named(&n);
	}
	fathom_answers_free(answers);
	fathom_target_release(target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_definitions_are_read),
		cmocka_unit_test(its_info_sums_up),
		cmocka_unit_test(its_samples_are_read_anew),
		cmocka_unit_test(every_prefix_is_read),
		cmocka_unit_test(impossible_numbers_are_refused),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(the_budget_bounds_it),
		cmocka_unit_test(parts_have_words),
		cmocka_unit_test(locations_are_named_by_their_files),
		cmocka_unit_test(debug_directories_are_searched),
		cmocka_unit_test(the_vdso_is_named_by_its_own),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
