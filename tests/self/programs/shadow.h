/* SPDX-License-Identifier: MIT */
/* What the two parts of the program "shadow" share. */
#ifndef SHADOW_H
#define SHADOW_H

#ifdef __cplusplus
extern "C" {
#endif

/* A function that the shadow stack has. */
#define SHADOWED __attribute__((noinline, section("shadowed")))

/* Calls all kinds of functions once; @round varies what they do. */
void do_work(unsigned round);
/* What the handler of the second signal does. */
void do_nested(unsigned depth);

#ifdef __cplusplus
}
#endif

#endif
