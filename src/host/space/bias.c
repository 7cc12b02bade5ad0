/* SPDX-License-Identifier: MIT */
#include "bias.h"

/* What segment @s says of the bias of mapping @m; false when the mapping is not of it. */
static bool bias_by_segment(const struct fathom_segment *s, const struct fathom_mapping *m,
			    uint64_t page, uint64_t *ret_bias)
{
	const uint64_t first = s->off & ~(page - 1);
	uint64_t end;

	if (s->type != PT_LOAD || !s->filesz || __builtin_add_overflow(s->off, s->filesz, &end) ||
	    end > UINT64_MAX - page)
		return false;
	end = (end + page - 1) & ~(page - 1);
	if (m->off < first || m->off >= end)
		return false;
	*ret_bias = m->start - ((s->vaddr & ~(page - 1)) + (m->off - first));
	return true;
}

/* Whether some segment says @bias of @m. */
static bool agrees(const struct fathom_image *image, const struct fathom_mapping *m, uint64_t page,
		   uint64_t bias)
{
	struct fathom_segment s;
	uint64_t other;

	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &s) && bias_by_segment(&s, m, page, &other) &&
		    other == bias)
			return true;
	return false;
}

/* How many of the mappings of the same file agree with @bias. */
static size_t count_agreeing(const struct fathom_image *image, const struct fathom_maps *maps,
			     size_t of, uint64_t page, uint64_t bias)
{
	size_t n = 0;

	for (size_t i = 0; i < maps->n; i++)
		if (fathom_mapping_is_usable(&maps->items[i]) &&
		    fathom_mapping_same_file(&maps->items[i], &maps->items[of]) &&
		    agrees(image, &maps->items[i], page, bias))
			n++;
	return n;
}

/* What the first segment of which @m may be says of its bias, and whether another says otherwise.
 */
static bool first_bias(const struct fathom_image *image, const struct fathom_mapping *m,
		       uint64_t page, uint64_t *ret_bias, bool *ret_is_disputed)
{
	struct fathom_segment s;
	bool found = false;
	uint64_t bias;

	*ret_is_disputed = false;
	for (uint32_t k = 0; k < image->phnum; k++) {
		if (!fathom_image_segment(image, k, &s) || !bias_by_segment(&s, m, page, &bias))
			continue;
		if (!found)
			*ret_bias = bias;
		else if (bias != *ret_bias)
			*ret_is_disputed = true;
		found = true;
	}
	return found;
}

bool fathom_bias_is_disputed(const struct fathom_image *image, const struct fathom_mapping *m,
			     uint64_t page)
{
	bool is_disputed;
	uint64_t bias = 0;

	return first_bias(image, m, page, &bias, &is_disputed) && is_disputed;
}

bool fathom_bias_of_mapping(const struct fathom_image *image, const struct fathom_maps *maps,
			    size_t i, uint64_t page, uint64_t *ret_bias)
{
	const struct fathom_mapping *m = &maps->items[i];
	struct fathom_segment s;
	size_t best = 0;
	bool is_disputed;
	uint64_t bias;

	if (!first_bias(image, m, page, ret_bias, &is_disputed))
		return false;
	for (uint32_t k = 0; is_disputed && k < image->phnum; k++) {
		size_t votes;

		if (!fathom_image_segment(image, k, &s) || !bias_by_segment(&s, m, page, &bias))
			continue;
		/* Of two that as many agree with, the one whose rights are the mapping's. */
		votes = 2 * count_agreeing(image, maps, i, page, bias) +
			(((s.flags & PF_X) != 0) == m->executable);
		if (votes > best) {
			best = votes;
			*ret_bias = bias;
		}
	}
	return true;
}

bool fathom_bias_holds(const struct fathom_image *image, uint64_t bias,
		       const struct fathom_mapping *m, uint64_t at, uint64_t avma, uint64_t page)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++) {
		uint64_t first;
		uint64_t size;

		if (!fathom_image_segment(image, i, &s) || s.type != PT_LOAD)
			continue;
		/* Whole pages are mapped: what stands around the segment in them, too. */
		first = s.vaddr & ~(page - 1);
		size = (s.vaddr - first + s.memsz + page - 1) & ~(page - 1);
		if (avma - bias - first >= size || at - bias - first >= size)
			continue;
		if (m->off + (at - m->start) == s.off + (at - bias - s.vaddr) &&
		    (m->executable || !(s.flags & PF_X)))
			return true;
	}
	return false;
}

static bool may_run(const struct fathom_maps *maps, uint64_t avma)
{
	const size_t at = fathom_maps_at(maps, avma);

	return at < maps->n && maps->items[at].executable;
}

bool fathom_bias_is_loaded(const struct fathom_image *image, const struct fathom_maps *maps,
			   uint64_t bias)
{
	struct fathom_segment s;
	bool has_code = false;

	for (uint32_t i = 0; i < image->phnum; i++) {
		if (!fathom_image_segment(image, i, &s) || s.type != PT_LOAD || !(s.flags & PF_X) ||
		    !s.memsz)
			continue;
		has_code = true;
		/* Single pages may have lost that right for a while: those that are patched. */
		if (may_run(maps, bias + s.vaddr) || may_run(maps, bias + s.vaddr + s.memsz - 1))
			return true;
	}
	return !has_code;
}

bool fathom_bias_covers(const struct fathom_image *image, uint64_t bias, uint64_t avma)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &s) && s.type == PT_LOAD &&
		    avma - bias - s.vaddr < s.memsz)
			return true;
	return false;
}
