/* SPDX-License-Identifier: MIT */
/*
 * The anchors: words of which each line with an address holds one. Most lines of most logs hold
 * none and are passed over, all anchors at once.
 */
#ifndef FATHOM_FILTER_ANCHORS_H
#define FATHOM_FILTER_ANCHORS_H

/* Returns the first place in [@at, @end), a part of the text from @start, of an anchor; or @end. */
const char *fathom_log_find_anchor(const char *start, const char *at, const char *end);

/* Returns the first place in [@start, @end) with words that begin a report; or @end. */
const char *fathom_log_find_head(const char *start, const char *end);

/* Does the same for reports of the kernel about itself. */
const char *fathom_log_find_kernel_head(const char *start, const char *end);

#endif
