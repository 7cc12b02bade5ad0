/* SPDX-License-Identifier: MIT */
/*
 * The program's own signal actions in libfathom-crash.so.
 *
 * The library defines sigaction(), signal() and their like in front of the C library's. The crash
 * handler stands in the kernel only while the program's own action for the signal is the default;
 * a handler of the program, or SIG_IGN, replaces it there, and the default brings it back. The
 * program sees its own actions only. So what it does with a signal, what it hands on to earlier
 * handlers, and what children inherit are as without this library.
 *
 * abort() and assert() end a program that has blocked SIGABRT by a signal that is handled, if that
 * of the program is the default.
 *
 * Not handled: programs that make the system call rt_sigaction by themselves see the crash handler,
 * and what they set is not followed until the next call of a function here; libc's own checks, such
 * as malloc's, which call abort() by themselves.
 */
#ifndef FATHOM_CRASH_PRELOAD_SIGNALS_H
#define FATHOM_CRASH_PRELOAD_SIGNALS_H

/*
 * Between begin and end, fathom_crash_install() sees a program whose actions are all the default,
 * and each action that it sets becomes the one that stands in the kernel for the program's default.
 *
 * Safety: neither
 */
void fathom_preload_signals_begin(void);
void fathom_preload_signals_end(void);

#endif
