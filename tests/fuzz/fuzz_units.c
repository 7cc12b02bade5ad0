/* SPDX-License-Identifier: MIT */
/* .debug_abbrev, .debug_info and what entries refer to: strings, addresses, ranges. */
#include "fuzz.h"

#include "safe/dwarf/ranges.h"

static void use_die(const struct fathom_unit *unit, const struct fathom_die *die)
{
	struct fathom_ranges ranges;
	uint64_t low;
	uint64_t high;

	fuzz_use_str(fathom_unit_string(unit, fathom_die_attr(die, FATHOM_AT_NAME)));
	fuzz_use_str(fathom_unit_string(unit, fathom_die_attr(die, FATHOM_AT_LINKAGE_NAME)));
	if (fathom_unit_reference(unit, fathom_die_attr(die, FATHOM_AT_ORIGIN), &low))
		fuzz_use(low);
	uint64_t left = fathom_ranges_allowed(unit->dwarf, unit->skeleton);

	if (!fathom_ranges_of_die(&ranges, unit, die, &left))
		return;
	for (int i = 0; i < 1000 && !fathom_ranges_next(&ranges, &low, &high, NULL); i++)
		fuzz_use(low ^ high);
}

static void walk(const struct fathom_unit *unit, uint32_t kinds, bool skip)
{
	struct fathom_die_reader r;
	struct fathom_die die;
	uint32_t depth;

	fathom_die_reader_init(&r, unit, unit->header.die_off);
	r.passing = skip;
	while (!fathom_die_next(&r, kinds, &die, &depth, NULL)) {
		use_die(unit, &die);
		if (skip)
			(void)fathom_die_skip_children(&r, &die);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fathom_abbrev abbrevs[512];
	static struct fathom_step steps[2048];
	struct fuzz f = fuzz_init(data, size);
	struct fathom_dwarf dwarf;
	struct fathom_unit_header header;
	uint64_t next = 0;

	fuzz_dwarf(&f, &dwarf);
	for (uint64_t off = 0; off < dwarf.section[FATHOM_DEBUG_INFO].size; off = next) {
		struct fathom_abbrevs t = {
			.abbrevs = abbrevs, .steps = steps, .cap_abbrevs = 512, .cap_steps = 2048
		};
		struct fathom_unit unit;
		struct fathom_die root;

		if (fathom_unit_header_read(&dwarf, off, &header, NULL))
			break;
		next = header.end_off;
		if (fathom_abbrevs_read(&dwarf, header.abbrev_off, header.encoding, 0, &t, NULL) ||
		    fathom_unit_open(&dwarf, &header, &t, &unit, &root, NULL))
			continue;
		walk(&unit, UINT32_MAX, false);
		walk(&unit, FATHOM_DIE_BIT(FATHOM_DIE_FUNCTION), true);
	}
	return 0;
}
