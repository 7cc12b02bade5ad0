/* SPDX-License-Identifier: MIT */
/* What seccomp is to do from now on when memory is read by a system call. */
#ifndef FORBID_H
#define FORBID_H

#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static inline void forbid_reading(uint32_t what)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, what),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof code / sizeof *code, code };

	expect(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	expect(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

#endif
