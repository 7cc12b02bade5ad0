/* SPDX-License-Identifier: MIT */
/*
 * A module of the kernel that oopses, warns, hangs or prints code when a word is written to
 * /proc/kernel_faults.
 * Built with CHANGED, it has another constant in one instruction.
 */
#include <linux/bug.h>
#include <linux/kallsyms.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/timer.h>
#include <linux/uaccess.h>

#ifdef CHANGED
#define AMOUNT 0x12345679
#else
#define AMOUNT 0x12345678
#endif

/* Bytes of the kernel's code that are looked at, and the distance of two places. */
#define MOST 0x1000000
#define STEP 4999

/* Bytes before and after the program counter. */
#define BEFORE 42
#define AFTER  21

struct object {
	char name[0x18];
	int count;
};

static struct proc_dir_entry *file;
static struct timer_list timer;
static struct object *nothing;
static int counter;

/* The kernel prints 42 bytes before the faults: they must be in the module. */
__attribute__((noipa)) static int stand_before(int value)
{
	for (int i = 0; i < value; i++)
		counter += value * i + (counter << 3);
	return counter;
}

static __always_inline void take(struct object *object)
{
	object->count = AMOUNT;
}

__attribute__((noipa)) static void fault_oops(struct object *object)
{
	take(object);
	counter++;
}

static __always_inline void check_inside(int value)
{
	WARN_ON(value == 1);
}

static __always_inline void check(int value)
{
	check_inside(value);
	counter++;
}

__attribute__((noipa)) static void fault_warn(int value)
{
	counter += AMOUNT;
	check(value);
}

__attribute__((noipa)) static void fault_bug(int value)
{
	counter += AMOUNT;
	if (value)
		BUG();
	counter++;
}

__attribute__((noipa)) static void fault_sleep(void)
{
	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule();
	counter++;
}

static int hang(void *unused)
{
	for (;;)
		fault_sleep();
	return 0;
}

static void on_timer(struct timer_list *unused)
{
	fault_oops(READ_ONCE(nothing));
	counter++;
}

/*
 * Prints code of the kernel that runs, as show_opcodes() of arch/x86/kernel/dumpstack.c does: from
 * all of its image, at odd distances.
 */
static void print_code(void)
{
	const unsigned long middle = (unsigned long)_printk;

	for (unsigned long at = middle - MOST; at < middle + MOST; at += STEP) {
		char name[KSYM_SYMBOL_LEN];
		u8 bytes[BEFORE + AFTER + 1];

		sprint_symbol(name, at);
		if (name[0] == '0' ||
		    copy_from_kernel_nofault(bytes, (u8 *)at - BEFORE, sizeof bytes))
			continue;
		pr_info("sample: BUG: RIP: 0010:%s\n", name);
		pr_info("Code: %" __stringify(BEFORE) "ph <%02x> %" __stringify(AFTER) "ph\n",
			bytes, bytes[BEFORE], bytes + BEFORE + 1);
	}
}

static void make_fault(char kind)
{
	switch (kind) {
	case 'o':
		fault_oops(READ_ONCE(nothing));
		break;
	case 'w':
		fault_warn(1);
		break;
	case 'b':
		fault_bug(1);
		break;
	case 'h':
		kthread_run(hang, NULL, "faults/hang");
		break;
	case 'm':
		mutex_lock((struct mutex *)(READ_ONCE(nothing) + 1));
		break;
	case 'c':
		print_code();
		break;
	case 't':
		mod_timer(&timer, jiffies + 1);
		break;
	}
	counter++;
}

static ssize_t on_write(struct file *unused, const char __user *text, size_t size, loff_t *offset)
{
	char kind = 0;

	if (!size || copy_from_user(&kind, text, 1))
		return -EFAULT;
	make_fault(kind);
	return (ssize_t)size;
}

static const struct proc_ops ops = { .proc_write = on_write };

static int __init start(void)
{
	stand_before(READ_ONCE(counter));
	timer_setup(&timer, on_timer, 0);
	file = proc_create("kernel_faults", 0200, NULL, &ops);
	return file ? 0 : -ENOMEM;
}

module_init(start);
MODULE_LICENSE("Dual MIT/GPL");
