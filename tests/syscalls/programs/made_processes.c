/* SPDX-License-Identifier: MIT */
#include "made.h"

#include <linux/aio_abi.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <time.h>

static void clones(void)
{
	struct clone_args args = { .flags = CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID |
					    CLONE_SETTLS | CLONE_PIDFD,
				   .exit_signal = 17,
				   .parent_tid = 0x11111111,
				   .child_tid = 0x22222,
				   .pidfd = 0x333,
				   .stack = 0x44000,
				   .stack_size = 0x55,
				   .tls = 0x666 };
	CALL(clone3, &args, 88);
	CALL(clone3, 0, 64);
	CALL(clone3, big, 10);
	CALL(clone3, BAD, 88);
	int pid = CALL(clone, CLONE_PARENT_SETTID | CLONE_VFORK | SIGCHLD, 0, big, big + 8, 0);
	if (!pid)
		_exit(5);
	CALL(wait4, pid, big, __WALL | WUNTRACED, 0);
	CALL(clone, CLONE_NEWUSER | CLONE_THREAD, 0, 0, 0, 0);
}

void processes(void)
{
	siginfo_t info;
	int pid;
	clones();
	pid = fork();
	if (!pid)
		kill(getpid(), 9);
	waitid(P_PID, pid, &info, WEXITED | WNOWAIT);
	CALL(waitid, P_PID, pid, &info, WEXITED, big);
	pid = vfork();
	if (!pid)
		_exit(1);
	CALL(wait4, pid, big, 0, big + 100);
	CALL(wait4, -1, big, WNOHANG | __WALL, 0);
	waitid(P_ALL, 0, 0, WEXITED | WNOHANG);
	CALL(kill, 0, 0);
	CALL(tgkill, 1, 2, SIGSEGV);
	CALL(kill, -1111111, 33);
	CALL(kill, -1111111, 99);
	CALL(tkill, -1, 9);
	CALL(pidfd_open, 1, 0);
	CALL(pidfd_send_signal, 99, 9, 0, 0);
	CALL(setns, 99, CLONE_NEWNET);
	CALL(unshare, CLONE_FILES | CLONE_FS);
	CALL(kcmp, 1, 2, 0, 3, 4);
	CALL(getpgid, 0);
	CALL(setpgid, -1, 0);
	CALL(getsid, 99999999);
	CALL(set_robust_list, 0, 0);
	CALL(get_robust_list, 0, big, big + 8);
	CALL(rseq, BAD, 32, 0, 5);
	CALL(arch_prctl, 0x1011, 0);
	CALL(arch_prctl, 0x1003, big);
	CALL(arch_prctl, 0x99, 0);
	CALL(ptrace, 0x4206, 99999999, 0, 0x10000f);
	CALL(ptrace, 7, 99999999, 0, 9);
	CALL(ptrace, 0x4204, 99999999, 1, 0);
	CALL(ptrace, 16, 99999999, 2, 3);
}

void schedulers(void)
{
	CALL(sched_setscheduler, 0, SCHED_OTHER, &(int){ 0 });
	CALL(sched_getscheduler, 0);
	CALL(sched_setscheduler, 0, 99, BAD);
	CALL(sched_getparam, 0, big);
	CALL(sched_get_priority_max, 1);
	CALL(sched_setaffinity, 0, 8, &(long){ -1 });
	CALL(sched_getaffinity, 0, 128, big);
	CALL(sched_getattr, 0, big, 48, 0);
	CALL(ioprio_get, 1, 0);
	CALL(ioprio_set, 1, 0, (2 << 13) | 4);
	CALL(sched_yield);
	CALL(getcpu, 0, 0, 0);
	CALL(getpriority, 0, 0);
	CALL(setpriority, 2, -2, -5);
	CALL(prlimit64, 0, RLIMIT_CORE, &(struct rlimit){ 0, -1 }, 0);
	CALL(prlimit64, 0, 7, 0, big);
	CALL(prlimit64, 0, 99, 0, big);
	CALL(setrlimit, RLIMIT_CORE, &(struct rlimit){ 1024, 4096 });
	CALL(getrlimit, RLIMIT_STACK, big);
	CALL(setrlimit, 99, BAD);
	CALL(getrusage, -1, BAD);
	CALL(uname, big);
}

void identities(void)
{
	CALL(capget, (int[]){ 0x20080522, 0 }, big);
	CALL(capget, (int[]){ 5, 0 }, 0);
	CALL(capset, (int[]){ 0x20080522, 999999 }, (int[]){ 7, 1, 0, 0, 0, 0 });
	CALL(personality, 0xffffffff);
	CALL(personality, 0x0040000);
	CALL(personality, 0);
	CALL(setuid, -1);
	CALL(setreuid, -1, -1);
	CALL(setresuid, -1, -1, -1);
	CALL(setfsuid, -1);
	CALL(setgroups, 3, BAD);
	CALL(getgroups, 0, 0);
	CALL(getresuid, big, big, big);
	CALL(sethostname, BAD, 3);
	CALL(syslog, 10, 0, 0);
	CALL(syslog, 99, 0, 0);
	CALL(reboot, 1, 2, 3, 4);
	CALL(acct, "/nope");
	CALL(swapon, "/nope", 0x8005);
	CALL(swapoff, "/nope");
	CALL(chroot, "/nope");
	CALL(pivot_root, "/nope", "/nope2");
	mount("none", "/nope", "tmpfs", MS_RDONLY | MS_NOSUID | MS_REMOUNT, "size=5");
	mount("none", "/nope", "tmpfs", MS_RDONLY, "size=5");
	mount(0, "/nope", 0, MS_BIND, 0);
	umount2("/nope", MNT_DETACH | UMOUNT_NOFOLLOW);
	CALL(quotactl, 0x80000700, "/nope", 0, 0);
}

static void controls_of_names(void)
{
	prctl(PR_SET_NAME, "hello");
	prctl(PR_GET_NAME, big);
	prctl(PR_SET_NAME, "a name that is longer");
	prctl(PR_SET_NAME, BAD);
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, end_of_page(4096), 4096, "nm");
	prctl(PR_SET_MM, PR_SET_MM_BRK, 5, 0, 0);
	prctl(PR_SET_PTRACER, -1L);
	prctl(PR_SET_PTRACER, 5);
}

void controls(void)
{
	controls_of_names();
	prctl(PR_SET_PDEATHSIG, 9);
	prctl(PR_GET_PDEATHSIG, big);
	prctl(PR_SET_PDEATHSIG, 0);
	prctl(PR_GET_DUMPABLE);
	prctl(PR_SET_DUMPABLE, 1);
	prctl(9999, 1, 2, 3, 4);
	prctl(PR_CAPBSET_READ, 3);
	prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
	prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_GET_CHILD_SUBREAPER, big);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 3, 0, 0);
	prctl(PR_GET_SECCOMP);
	prctl(PR_GET_TIMERSLACK);
	prctl(PR_SET_TIMERSLACK, 5);
	prctl(PR_GET_SECUREBITS);
	prctl(PR_GET_TSC, big);
	prctl(PR_GET_KEEPCAPS);
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
	prctl(PR_MCE_KILL_GET, 0, 0, 0, 0);
	prctl(PR_MCE_KILL, 1, 2, 0, 0);
	prctl(PR_SET_SECCOMP, 2, BAD);
	CALL(seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &(int){ SECCOMP_RET_ERRNO });
	CALL(seccomp, 1, 1 | 64, BAD);
	CALL(seccomp, 9, 8, 7);
}

void programs(void)
{
	char *many[40];
	for (int i = 0; i < 39; i++)
		many[i] = "x";
	many[39] = 0;
	CALL(execve, "/nope", ((char *[]){ "a", (char *)8, 0 }), ((char *[]){ 0 }));
	CALL(execve, "/nope", many, many);
	CALL(execveat, -100, "/nope", many, 0, 0x1000);
	CALL(execve, BAD, BAD, BAD);
	char **edge = (char **)end_of_page(16);
	edge[0] = "one";
	edge[1] = "two";
	CALL(execve, "/nope", edge, edge);
	CALL(execve, "/nope", ((char *[]){ "\n", "\377", 0 }), 0);
}

void rare(void)
{
	CALL(bpf, 0, 0, 0);
	CALL(perf_event_open, 0, 1, 2, 3, 9);
	CALL(userfaultfd, O_CLOEXEC | 99);
	CALL(pidfd_getfd, 99, 1, 0);
	CALL(fsopen, "nope", 1);
	CALL(fsconfig, 99, 1, "key", "value", 0);
	CALL(fsmount, 99, 1, 1);
	CALL(move_mount, 99, "a", 98, "b", 4);
	CALL(open_tree, -100, "/nope", 1 | 0x80000 | 0x8000);
	CALL(fspick, -100, "/nope", 2);
	CALL(mount_setattr, -100, "/nope", 0, ((long[]){ 0x21, 1, 0, 9 }), 32);
	CALL(landlock_create_ruleset, &(long){ 7 }, 8, 0);
	CALL(landlock_add_rule, 99, 1, ((long[]){ 5, 3 }), 0);
	CALL(fanotify_init, 99, O_RDONLY);
	CALL(fanotify_mark, 99, 1, 2, -100, "/nope");
	CALL(iopl, 0);
	CALL(init_module, 8, 5, "args");
	CALL(delete_module, "nope", O_NONBLOCK);
	CALL(finit_module, 99, "p", 1);
	CALL(add_key, "user", "nm", 0, 7, 99);
	CALL(request_key, "nope", "nm", 0, -3);
	CALL(keyctl, 99, 1, 2, 3, 4);
	CALL(io_destroy, 0);
	CALL(io_uring_setup, 0, 8);
	CALL(io_uring_enter, 99, 1, 2, 3, 0, 8L);
	syscall(471, 1, 2, 3, 4, 5, 6);
	syscall(-1);
}

static void bpf_heads(void)
{
	union bpf_attr a;
	memset(&a, 0, sizeof a);
	a.map_type = 2;
	a.key_size = 4;
	a.value_size = 8;
	a.max_entries = 16;
	strcpy(a.map_name, "name");
	CALL(bpf, 0, &a, sizeof a);
	CALL(bpf, 0, &a, 20);
	memset(&a, 0, sizeof a);
	a.map_fd = 99;
	a.key = 8;
	a.flags = 1;
	CALL(bpf, 1, &a, 32);
	CALL(bpf, 3, &a, 16);
	CALL(bpf, 2, BAD, 32);
	memset(&a, 0, sizeof a);
	a.prog_type = 1;
	a.insn_cnt = 2;
	a.insns = 8;
	a.license = (long)"GPL";
	a.kern_version = 0x60102;
	CALL(bpf, 5, &a, 48);
	memset(&a, 0, sizeof a);
	a.pathname = (long)"/nope";
	a.bpf_fd = 5;
	CALL(bpf, 7, &a, 16);
	CALL(bpf, 99, BAD, 4);
	static const int commands[] = {
		BPF_MAP_GET_NEXT_KEY,           BPF_PROG_ATTACH,      BPF_PROG_DETACH,
		BPF_PROG_GET_FD_BY_ID,          BPF_MAP_GET_FD_BY_ID, BPF_BTF_GET_FD_BY_ID,
		BPF_MAP_LOOKUP_AND_DELETE_ELEM, BPF_MAP_FREEZE,       BPF_LINK_GET_FD_BY_ID
	};
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		for (int k = 0; k < 3; k++) {
			static unsigned words[32];

			memset(words, 0, sizeof words);
			for (int w = 0; k && w < 32; w++)
				words[w] = k == 1 ? w + 1 : (w + 1) * 0x1010101;
			CALL(bpf, commands[i], words, k ? 128 : 40);
			CALL(bpf, commands[i], BAD, 40);
		}
}

void heads(void)
{
	struct perf_event_attr p;
	struct io_uring_params u;
	struct {
		int bytes;
		int type;
		char handle[128];
	} h = { 128, 0, "" };
	int mount;
	long context = 0;
	struct iocb b = { .aio_data = 7,
			  .aio_lio_opcode = IOCB_CMD_PREAD,
			  .aio_buf = 8,
			  .aio_nbytes = 5,
			  .aio_offset = 9 };
	struct iocb *blocks = &b;
	bpf_heads();
	memset(&p, 0, sizeof p);
	p.size = sizeof p;
	p.config = 1;
	p.disabled = 1;
	CALL(perf_event_open, &p, 0, -1, -1, 8L);
	p.type = 1;
	p.config = 2;
	p.exclude_kernel = 1;
	p.inherit = 1;
	p.sample_type = 3;
	p.precise_ip = 1;
	CALL(perf_event_open, &p, 0, -1, -1, 0L);
	p.type = 77;
	p.size = 72;
	p.freq = 1;
	p.sample_freq = 99;
	CALL(perf_event_open, &p, 0, -1, -1, 0L);
	CALL(perf_event_open, BAD, 0, -1, -1, 0L);
	memset(&u, 0, sizeof u);
	CALL(io_uring_setup, 4, &u);
	memset(&u, 0, sizeof u);
	u.flags = 1;
	CALL(io_uring_setup, 0, &u);
	CALL(name_to_handle_at, -100, "/etc", &h, &mount, 0);
	h.bytes = 0;
	CALL(name_to_handle_at, -100, "/etc", &h, &mount, 0);
	h.bytes = 128;
	CALL(name_to_handle_at, -100, "/nope", &h, &mount, 0);
	CALL(io_setup, 5, &context);
	CALL(io_submit, context, 1L, &blocks);
	CALL(io_submit, context, 2L, BAD);
	CALL(io_getevents, context, 0L, 2L, big, 0L);
	CALL(io_destroy, context);
}
