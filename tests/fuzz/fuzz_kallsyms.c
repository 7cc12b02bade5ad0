/* SPDX-License-Identifier: MIT */
/* The kernel's lists of symbols and of modules: lines as no kernel would write them. */
#include "fuzz.h"

#include <stdlib.h>

#include "host/space/kernel/kallsyms.h"
#include "host/space/kernel/loaded_modules.h"

/* What has to be true of whoever names @avma. */
static void check_hit(const struct fathom_kallsyms *k, uint64_t avma)
{
	struct fathom_kallsym_hit hit;

	fuzz_use_str(fathom_kallsyms_owner(k, avma));
	if (!fathom_kallsyms_at(k, avma, &hit))
		return;
	fuzz_use_str(hit.name);
	fuzz_use_str(hit.owner);
	if (!hit.name.size || avma < hit.start || avma - hit.start >= (hit.size ? hit.size : 1))
		abort();
}

/* Each symbol says what it is, and its address has a name, of a symbol that starts there. */
static void check_item(const struct fathom_kallsyms *k, size_t i)
{
	const struct fathom_kallsym *s = &k->items[i];
	struct fathom_kallsym_facts facts;
	struct fathom_kallsym_hit hit;

	fathom_kallsyms_describe(k, i, &facts);
	fuzz_use_str(facts.name);
	fuzz_use_str(facts.owner);
	if (facts.avma != s->avma || s->avma + fathom_kallsyms_size(k, i) < s->avma)
		abort();
	if (!fathom_kallsyms_at(k, s->avma, &hit) || hit.start != s->avma)
		abort();
	check_hit(k, s->avma - 1);
	check_hit(k, s->avma + 1);
	check_hit(k, s->avma | 4095);
}

static void check_order(const struct fathom_kallsym *items, size_t n, bool owned)
{
	for (size_t i = 0; i < n; i++)
		if ((i && items[i - 1].avma > items[i].avma) || !items[i].avma ||
		    !items[i].owner_size == owned)
			abort();
}

static void check_modules(const uint8_t *data, size_t size)
{
	struct fathom_kernel_modules m;
	char *text = malloc(size + 1);

	if (!text)
		return;
	if (size)
		memcpy(text, data, size);
	if (fathom_kernel_modules_parse(text, size, &m))
		return;
	for (size_t i = 0; i < m.n; i++) {
		fuzz_use_str(m.items[i].name);
		if (!m.items[i].name.size || m.items[i].start + m.items[i].size <= m.items[i].start)
			abort();
	}
	fathom_kernel_modules_deinit(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct fathom_kallsyms k;

	check_modules(data, size);
	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	if (fathom_kallsyms_parse(text, size, &k))
		return 0;
	check_order(k.items, k.n_image, false);
	check_order(k.items + k.n_image, k.n - k.n_image, true);
	for (size_t i = 0; i < k.n; i++)
		check_item(&k, i);
	fathom_kallsyms_deinit(&k);
	return 0;
}
