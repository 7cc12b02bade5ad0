/* SPDX-License-Identifier: MIT */
/*
 * Names of system calls, by their numbers. Made by tools/syscalls.py from the kernel's headers as
 * they are in
 * - linux-libc-dev 6.1.187-1
 * - linux-libc-dev-arm64-cross 6.1.4-1cross1.
 * Later kernels have more system calls; x32's are left out. All names stand in one string; the
 * tables have the offset of each, 0 for numbers without a name.
 */
#include "host/stack/syscall_names.h"

#include <elf.h>

/* clang-format off */
static const char names[] =
	"\0"
	"_llseek\0_newselect\0_sysctl\0accept\0accept4\0access\0acct\0add_key\0adjtimex\0"
	"afs_syscall\0alarm\0arch_prctl\0bdflush\0bind\0bpf\0break\0brk\0capget\0"
	"capset\0chdir\0chmod\0chown\0chown32\0chroot\0clock_adjtime\0clock_adjtime64\0"
	"clock_getres\0clock_getres_time64\0clock_gettime\0clock_gettime64\0clock_nanosleep\0"
	"clock_nanosleep_time64\0clock_settime\0clock_settime64\0clone\0clone3\0close\0"
	"close_range\0connect\0copy_file_range\0creat\0create_module\0delete_module\0dup\0"
	"dup2\0dup3\0epoll_create\0epoll_create1\0epoll_ctl\0epoll_ctl_old\0epoll_pwait\0"
	"epoll_pwait2\0epoll_wait\0epoll_wait_old\0eventfd\0eventfd2\0execve\0execveat\0"
	"exit\0exit_group\0faccessat\0faccessat2\0fadvise64\0fadvise64_64\0fallocate\0"
	"fanotify_init\0fanotify_mark\0fchdir\0fchmod\0fchmodat\0fchown\0fchown32\0"
	"fchownat\0fcntl\0fcntl64\0fdatasync\0fgetxattr\0finit_module\0flistxattr\0flock\0"
	"fork\0fremovexattr\0fsconfig\0fsetxattr\0fsmount\0fsopen\0fspick\0fstat\0"
	"fstat64\0fstatat64\0fstatfs\0fstatfs64\0fsync\0ftime\0ftruncate\0ftruncate64\0"
	"futex\0futex_time64\0futex_waitv\0futimesat\0get_kernel_syms\0get_mempolicy\0"
	"get_robust_list\0get_thread_area\0getcpu\0getcwd\0getdents\0getdents64\0getegid\0"
	"getegid32\0geteuid\0geteuid32\0getgid\0getgid32\0getgroups\0getgroups32\0"
	"getitimer\0getpeername\0getpgid\0getpgrp\0getpid\0getpmsg\0getppid\0getpriority\0"
	"getrandom\0getresgid\0getresgid32\0getresuid\0getresuid32\0getrlimit\0getrusage\0"
	"getsid\0getsockname\0getsockopt\0gettid\0gettimeofday\0getuid\0getuid32\0"
	"getxattr\0gtty\0idle\0init_module\0inotify_add_watch\0inotify_init\0"
	"inotify_init1\0inotify_rm_watch\0io_cancel\0io_destroy\0io_getevents\0"
	"io_pgetevents\0io_pgetevents_time64\0io_setup\0io_submit\0io_uring_enter\0"
	"io_uring_register\0io_uring_setup\0ioctl\0ioperm\0iopl\0ioprio_get\0ioprio_set\0"
	"ipc\0kcmp\0kexec_file_load\0kexec_load\0keyctl\0kill\0landlock_add_rule\0"
	"landlock_create_ruleset\0landlock_restrict_self\0lchown\0lchown32\0lgetxattr\0"
	"link\0linkat\0listen\0listxattr\0llistxattr\0lock\0lookup_dcookie\0lremovexattr\0"
	"lseek\0lsetxattr\0lstat\0lstat64\0madvise\0mbind\0membarrier\0memfd_create\0"
	"memfd_secret\0migrate_pages\0mincore\0mkdir\0mkdirat\0mknod\0mknodat\0mlock\0"
	"mlock2\0mlockall\0mmap\0mmap2\0modify_ldt\0mount\0mount_setattr\0move_mount\0"
	"move_pages\0mprotect\0mpx\0mq_getsetattr\0mq_notify\0mq_open\0mq_timedreceive\0"
	"mq_timedreceive_time64\0mq_timedsend\0mq_timedsend_time64\0mq_unlink\0mremap\0"
	"msgctl\0msgget\0msgrcv\0msgsnd\0msync\0munlock\0munlockall\0munmap\0"
	"name_to_handle_at\0nanosleep\0newfstatat\0nfsservctl\0nice\0oldfstat\0oldlstat\0"
	"oldolduname\0oldstat\0olduname\0open\0open_by_handle_at\0open_tree\0openat\0"
	"openat2\0pause\0perf_event_open\0personality\0pidfd_getfd\0pidfd_open\0"
	"pidfd_send_signal\0pipe\0pipe2\0pivot_root\0pkey_alloc\0pkey_free\0pkey_mprotect\0"
	"poll\0ppoll\0ppoll_time64\0prctl\0pread64\0preadv\0preadv2\0prlimit64\0"
	"process_madvise\0process_mrelease\0process_vm_readv\0process_vm_writev\0prof\0"
	"profil\0pselect6\0pselect6_time64\0ptrace\0putpmsg\0pwrite64\0pwritev\0pwritev2\0"
	"query_module\0quotactl\0quotactl_fd\0read\0readahead\0readdir\0readlink\0"
	"readlinkat\0readv\0reboot\0recvfrom\0recvmmsg\0recvmmsg_time64\0recvmsg\0"
	"remap_file_pages\0removexattr\0rename\0renameat\0renameat2\0request_key\0"
	"restart_syscall\0rmdir\0rseq\0rt_sigaction\0rt_sigpending\0rt_sigprocmask\0"
	"rt_sigqueueinfo\0rt_sigreturn\0rt_sigsuspend\0rt_sigtimedwait\0"
	"rt_sigtimedwait_time64\0rt_tgsigqueueinfo\0sched_get_priority_max\0"
	"sched_get_priority_min\0sched_getaffinity\0sched_getattr\0sched_getparam\0"
	"sched_getscheduler\0sched_rr_get_interval\0sched_rr_get_interval_time64\0"
	"sched_setaffinity\0sched_setattr\0sched_setparam\0sched_setscheduler\0sched_yield\0"
	"seccomp\0security\0select\0semctl\0semget\0semop\0semtimedop\0semtimedop_time64\0"
	"sendfile\0sendfile64\0sendmmsg\0sendmsg\0sendto\0set_mempolicy\0"
	"set_mempolicy_home_node\0set_robust_list\0set_thread_area\0set_tid_address\0"
	"setdomainname\0setfsgid\0setfsgid32\0setfsuid\0setfsuid32\0setgid\0setgid32\0"
	"setgroups\0setgroups32\0sethostname\0setitimer\0setns\0setpgid\0setpriority\0"
	"setregid\0setregid32\0setresgid\0setresgid32\0setresuid\0setresuid32\0setreuid\0"
	"setreuid32\0setrlimit\0setsid\0setsockopt\0settimeofday\0setuid\0setuid32\0"
	"setxattr\0sgetmask\0shmat\0shmctl\0shmdt\0shmget\0shutdown\0sigaction\0"
	"sigaltstack\0signal\0signalfd\0signalfd4\0sigpending\0sigprocmask\0sigreturn\0"
	"sigsuspend\0socket\0socketcall\0socketpair\0splice\0ssetmask\0stat\0stat64\0"
	"statfs\0statfs64\0statx\0stime\0stty\0swapoff\0swapon\0symlink\0symlinkat\0"
	"sync\0sync_file_range\0syncfs\0sysfs\0sysinfo\0syslog\0tee\0tgkill\0time\0"
	"timer_create\0timer_delete\0timer_getoverrun\0timer_gettime\0timer_gettime64\0"
	"timer_settime\0timer_settime64\0timerfd_create\0timerfd_gettime\0timerfd_gettime64\0"
	"timerfd_settime\0timerfd_settime64\0times\0tkill\0truncate\0truncate64\0tuxcall\0"
	"ugetrlimit\0ulimit\0umask\0umount\0umount2\0uname\0unlink\0unlinkat\0unshare\0"
	"uselib\0userfaultfd\0ustat\0utime\0utimensat\0utimensat_time64\0utimes\0vfork\0"
	"vhangup\0vm86\0vm86old\0vmsplice\0vserver\0wait4\0waitid\0waitpid\0write\0"
	"writev\0";

static const uint16_t x86_64_offs[451] = {
	2761, 4578, 2338, 350, 4010, 844, 1841, 2518, 1825, 1978, 2042, 2229, 124, 2953, 2980,
	3011, 1573, 2548, 2701, 2804, 4584, 43, 2461, 3353, 3324, 2169, 2204, 1920, 1855, 3857,
	3838, 3844, 426, 430, 2386, 2254, 1131, 84, 3643, 1169, 3409, 3965, 368, 28, 3446,
	2817, 3438, 2851, 3864, 109, 1764, 1285, 1141, 3983, 3780, 1297, 337, 785, 4513, 559,
	575, 4557, 1656, 4418, 3367, 3374, 3360, 3851, 2183, 2197, 2190, 2176, 721, 779, 886,
	735, 4351, 898, 1037, 1030, 142, 673, 2888, 1928, 2942, 392, 1752, 4424, 4070, 2784,
	148, 680, 154, 696, 1726, 4397, 1315, 1258, 1268, 4122, 4339, 2686, 1328, 4130, 1093,
	3804, 3593, 1075, 1057, 3659, 1184, 1161, 3773, 3743, 3679, 1109, 3609, 3721, 1236,
	3699, 1214, 1153, 3573, 3553, 1278, 128, 135, 2966, 3038, 2995, 3024, 3883, 4473, 1942,
	4448, 2408, 4467, 4022, 868, 4116, 1192, 3667, 3290, 3173, 3305, 3188, 3095, 3118,
	3207, 1956, 2210, 1969, 2218, 4519, 1989, 2472, 20, 2542, 90, 63, 3763, 168, 4088, 50,
	3791, 2000, 4410, 4063, 4055, 2810, 3631, 3539, 1586, 1579, 398, 1363, 412, 961, 2727,
	2740, 2275, 1176, 2693, 72, 4371, 3344, 1308, 2766, 3820, 1831, 812, 1344, 1742, 745,
	1771, 1781, 768, 2876, 1812, 790, 4345, 4148, 920, 3258, 3141, 3507, 1506, 1447, 1458,
	1515, 1437, 1007, 1797, 440, 477, 527, 2859, 1046, 3523, 2926, 3380, 612, 4153, 4226,
	4196, 4179, 4166, 307, 238, 205, 268, 580, 516, 467, 4141, 4506, 4549, 1863, 3453, 977,
	2079, 2159, 2126, 2087, 2069, 2055, 1638, 4563, 55, 2914, 1649, 1602, 1591, 1393, 1375,
	1420, 1906, 2371, 1934, 1948, 712, 951, 2264, 4431, 2895, 1757, 4078, 2793, 687, 591,
	2661, 2523, 4440, 3491, 991, 3994, 4137, 4093, 4540, 2031, 4479, 491, 3902, 4256, 542,
	635, 4305, 4271, 35, 3911, 550, 453, 435, 2466, 1406, 2556, 2710, 3077, 2392, 2826,
	645, 659, 2571, 2236, 2343, 175, 4109, 3429, 3653, 1023, 2614, 2631, 1617, 755, 3276,
	3159, 2904, 3336, 1204, 1880, 1622, 114, 566, 4455, 1869, 1962, 376, 2563, 2718, 2504,
	2483, 2494, 4038, 1471, 2948, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2443, 1558, 1525, 1540, 2361, 2020, 830, 803, 822,
	837, 2432, 343, 356, 2378, 2420, 601, 2581, 503, 2006, 2749, 1679, 1661, 1703, 1893,
	2597, 939, 3467,
};

static const uint16_t i386_offs[451] = {
	2926, 575, 785, 2761, 4578, 2338, 350, 4570, 392, 1752, 4424, 559, 142, 4148, 1942,
	148, 1726, 118, 2321, 1825, 1169, 2000, 4403, 3804, 1328, 4044, 2686, 84, 2291, 2386,
	4473, 4050, 1353, 43, 2286, 892, 4088, 1656, 2888, 1928, 2942, 426, 2461, 4339, 2649,
	124, 3593, 1093, 3895, 1075, 1057, 50, 4410, 1792, 1573, 721, 2051, 3659, 4390, 2309,
	4397, 168, 4467, 430, 1184, 1161, 3773, 3873, 3829, 4001, 3743, 3679, 3954, 3921, 3631,
	3763, 1258, 1268, 1315, 3791, 1109, 3609, 3353, 4070, 2300, 2784, 4448, 4063, 2810,
	2776, 1978, 2229, 4351, 898, 680, 696, 1192, 3667, 2654, 4022, 868, 1579, 3972, 4130,
	3643, 1131, 4010, 1841, 844, 2329, 1586, 4519, 1358, 4532, 4557, 4055, 4122, 1613, 886,
	3944, 337, 3539, 4418, 1989, 63, 2042, 3932, 398, 1363, 412, 961, 2740, 1153, 673, 101,
	4116, 2408, 72, 3573, 3553, 1, 1037, 9, 779, 2204, 2804, 4584, 1278, 735, 20, 1956,
	2210, 1969, 2218, 3290, 3173, 3305, 3188, 3324, 3095, 3118, 3207, 2254, 2169, 3721,
	1236, 4527, 2727, 2518, 2275, 3699, 1214, 2542, 3011, 2953, 2980, 2966, 3038, 2995,
	3024, 2548, 2701, 154, 1030, 128, 135, 3883, 3409, 1176, 2693, 4513, 4379, 1983, 4360,
	908, 4015, 1847, 850, 1733, 1335, 1100, 1083, 1065, 3752, 3688, 1119, 3619, 703, 3731,
	1246, 3709, 1224, 160, 3811, 3600, 3582, 3562, 2472, 1920, 1855, 1046, 727, 0, 0, 1308,
	2766, 3820, 1831, 812, 1344, 1742, 745, 1771, 1781, 768, 2876, 1812, 790, 4345, 3418,
	920, 3258, 3141, 3507, 1007, 1506, 1447, 1458, 1515, 1437, 612, 0, 580, 1797, 440, 467,
	516, 2859, 3523, 4153, 4226, 4196, 4179, 4166, 307, 238, 205, 268, 4029, 876, 4141,
	4506, 622, 4549, 1863, 977, 3453, 2079, 2159, 2126, 2087, 2069, 2055, 1638, 4563, 0,
	55, 2914, 1649, 1602, 1591, 1393, 1375, 1420, 1906, 2371, 1934, 1948, 712, 951, 858,
	4431, 2895, 1757, 4078, 2793, 687, 591, 2661, 2523, 4440, 3491, 991, 3994, 4093, 4137,
	4540, 2031, 1023, 491, 4479, 3902, 4256, 542, 635, 4305, 4271, 3911, 550, 453, 435,
	2466, 1406, 2556, 2710, 3077, 2392, 2826, 645, 659, 2571, 2236, 2343, 175, 4109, 3429,
	3653, 2614, 2631, 1617, 755, 3276, 3159, 2904, 3336, 1204, 1880, 114, 566, 3965, 3983,
	109, 368, 1764, 35, 1297, 3780, 1285, 1141, 3446, 3438, 2817, 2851, 3864, 4455, 1869,
	1962, 376, 2563, 2718, 2504, 2483, 2494, 4038, 90, 1471, 2948, 0, 0, 0, 0, 0, 0, 3367,
	3360, 3857, 3844, 3838, 3851, 2183, 2197, 2190, 2176, 252, 321, 189, 218, 284, 4210,
	4240, 4287, 4321, 4489, 2670, 2529, 0, 1485, 2835, 2139, 2103, 3391, 3054, 926, 3229,
	2443, 1558, 1525, 1540, 2361, 2020, 830, 803, 822, 837, 2432, 343, 356, 2378, 2420,
	601, 2581, 503, 2006, 2749, 1679, 1661, 1703, 1893, 2597, 939, 3467,
};

static const uint16_t aarch64_offs[451] = {
	1506, 1447, 1515, 1437, 1458, 3820, 1831, 812, 1344, 1742, 745, 1771, 1781, 768, 2876,
	1812, 790, 1030, 1797, 550, 453, 467, 491, 426, 435, 721, 1406, 1375, 1420, 1573, 1602,
	1591, 779, 1948, 1934, 4431, 4078, 1757, 2895, 4410, 2000, 2472, 2275, 4022, 868, 4351,
	898, 635, 591, 142, 673, 168, 680, 687, 712, 696, 2371, 350, 4519, 2466, 2740, 1046,
	1825, 2761, 4578, 2804, 4584, 2548, 2701, 2556, 2710, 3409, 2661, 2523, 3911, 4540,
	3994, 4137, 2793, 2264, 844, 4088, 886, 735, 4093, 4256, 4305, 4271, 4479, 50, 128,
	135, 2408, 575, 580, 4563, 3523, 4440, 920, 3491, 991, 2254, 1131, 3643, 1638, 1363,
	412, 4153, 4196, 4179, 4226, 4166, 307, 238, 205, 268, 4130, 2686, 3290, 3305, 3188,
	3173, 3258, 3141, 3324, 3095, 3118, 3207, 2926, 1656, 4345, 4141, 3883, 3024, 2953,
	2980, 2966, 3038, 2995, 3011, 3667, 1192, 2810, 3679, 3593, 3743, 3804, 3721, 1236,
	3699, 1214, 3573, 3553, 4339, 3659, 1153, 1278, 3773, 1109, 3609, 4418, 3631, 3539,
	1258, 3763, 1268, 4397, 2542, 1023, 1315, 3791, 63, 1169, 1184, 1328, 1075, 1093, 1057,
	1308, 4122, 2079, 2159, 2126, 2087, 2069, 2055, 2183, 2176, 2190, 2197, 3367, 3360,
	3380, 3374, 3857, 3844, 3838, 3851, 3965, 3983, 109, 1764, 28, 368, 1285, 1141, 3446,
	2817, 3780, 1297, 3864, 3438, 2851, 2766, 124, 2229, 2169, 55, 2914, 1649, 337, 559,
	1978, 612, 4063, 4055, 2042, 2204, 1956, 2210, 1969, 2218, 1920, 1855, 2859, 1863, 977,
	3453, 1906, 2031, 3077, 2392, 35, 2826, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	4557, 2571, 645, 659, 2236, 2343, 175, 4109, 3653, 3429, 2614, 2631, 1617, 755, 3276,
	3159, 2904, 3336, 1204, 1880, 114, 566, 4455, 1869, 1962, 376, 2563, 2718, 2504, 2483,
	2494, 4038, 1471, 2948, 1622, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2443, 1558, 1525,
	1540, 2361, 2020, 830, 803, 822, 837, 2432, 343, 356, 2378, 2420, 601, 2581, 503, 2006,
	2749, 1679, 1661, 1703, 1893, 2597, 939, 3467,
};
/* clang-format on */

const char *fathom_syscall_name(uint32_t machine, int64_t number)
{
	static const struct {
		uint32_t machine;
		uint32_t n;
		const uint16_t *offs;
	} tables[] = {
		{ EM_X86_64, sizeof x86_64_offs / sizeof *x86_64_offs, x86_64_offs },
		{ EM_386, sizeof i386_offs / sizeof *i386_offs, i386_offs },
		{ EM_AARCH64, sizeof aarch64_offs / sizeof *aarch64_offs, aarch64_offs },
	};

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		if (tables[i].machine == machine && number >= 0 && number < tables[i].n &&
		    tables[i].offs[number])
			return names + tables[i].offs[number];
	return NULL;
}
