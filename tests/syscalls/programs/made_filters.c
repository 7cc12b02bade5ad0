/* SPDX-License-Identifier: MIT */
/* Programs of the packet filter: all codes, with jumps and without, and what filters of calls
 * return. */
#include "made.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static struct sock_filter code[5000];

static void load(unsigned n, void *at)
{
	struct sock_fprog program = { n, at };

	CALL(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_LOG, &program);
	setsockopt(-1, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

void filters(void)
{
	static const uint32_t values[] = {
		SECCOMP_RET_KILL_THREAD,
		SECCOMP_RET_KILL_PROCESS,
		SECCOMP_RET_TRAP,
		SECCOMP_RET_TRAP | 1,
		SECCOMP_RET_ERRNO,
		SECCOMP_RET_ERRNO | 0xfff,
		SECCOMP_RET_TRACE | 5,
		SECCOMP_RET_LOG,
		SECCOMP_RET_ALLOW,
		SECCOMP_RET_USER_NOTIF | 1,
		0xfffff028,
		0x12345678,
	};
	struct sock_fprog program = { 3, code };

	for (int i = 0; i < 256; i++) {
		code[i] = (struct sock_filter){ i, 0, 0, 3 * i };
		code[i + 256] = (struct sock_filter){ i, 1, 255, 0x7fff0001 };
	}
	load(512, code);
	for (int i = 0; i < 16; i++)
		code[i] = (struct sock_filter){ 0x1200 + i * 5, 0, i & 1, 5 };
	load(16, code);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		code[i] = (struct sock_filter){ BPF_RET | BPF_K, 0, 0, values[i] };
	load(sizeof values / sizeof *values, code);
	load(4096, code);
	load(5000, code);
	load(0, code);
	load(2, 0);
	load(2, BAD);
	load(5, end_of_page(3 * sizeof *code));
	CALL(seccomp, SECCOMP_SET_MODE_FILTER, 0, 0);
	CALL(seccomp, SECCOMP_SET_MODE_FILTER, 0, BAD);
	CALL(prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 1, 2);
	CALL(prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, BAD, 1, 2);
	setsockopt(-1, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
	setsockopt(-1, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program - 1);
	setsockopt(-1, SOL_SOCKET, SO_ATTACH_FILTER, 0, sizeof program);
	setsockopt(-1, SOL_SOCKET, SO_ATTACH_BPF, &(int){ 5 }, 4);
	setsockopt(-1, SOL_SOCKET, SO_DETACH_FILTER, &(int){ 5 }, 4);
}
