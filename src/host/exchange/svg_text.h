/* SPDX-License-Identifier: MIT */
/* Texts and numbers of a picture: SVG 1.1, which is XML 1.0. */
#ifndef FATHOM_EXCHANGE_SVG_TEXT_H
#define FATHOM_EXCHANGE_SVG_TEXT_H

#include "fathom/profile_report.h"
#include "host/events/writer.h"

/*
 * Appends @text for an element or an attribute, cut so that it takes at most @columns of a font in
 * which all characters are equally wide, two for those that may be wider. What cannot be seen, or
 * is no text, becomes an escape of C. Returns false, and writes nothing, if less than three columns
 * of it would be left.
 */
bool fathom_svg_text(struct fathom_trace_writer *w, const char *text, size_t columns);

/* Appends @value, a number of pixels, with three decimals. */
void fathom_svg_pixels(struct fathom_trace_writer *w, double value);
/* Appends ATTRIBUTE="VALUE" after a space. */
void fathom_svg_attribute(struct fathom_trace_writer *w, const char *attribute, double value);

/* Bytes that the text of a weight takes at most. */
#define FATHOM_SVG_WEIGHT_SIZE 48

/* Writes @weight with two decimals, "1.23 ms" if @is_time, else "1.23 M". Returns @to. */
const char *fathom_svg_weight(char to[FATHOM_SVG_WEIGHT_SIZE], uint64_t weight, bool is_time);
/* Writes what part of @whole @part is, "12.34 %". Returns @to. */
const char *fathom_svg_percent(char to[FATHOM_SVG_WEIGHT_SIZE], uint64_t part, uint64_t whole);

#endif
