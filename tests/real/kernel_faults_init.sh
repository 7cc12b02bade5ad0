#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# The first process of the kernel that tests/real/kernel_log.py boots: a module oopses, warns and hangs,
# of which the kernel tells on its serial line. The last fault ends the kernel.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
insmod /kernel_faults.ko
# An oops ends the process that has made it.
for kind in code warn oops bug mutex; do
    (echo "$kind" >/proc/kernel_faults)
done
echo 2 >/proc/sys/kernel/hung_task_timeout_secs
echo hang >/proc/kernel_faults
sleep 10
echo 0 >/proc/sys/kernel/hung_task_timeout_secs
echo w >/proc/sysrq-trigger
(echo oops >/proc/kernel_faults)
echo timer >/proc/kernel_faults
sleep 60
poweroff -f
