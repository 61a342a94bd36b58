/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_KERNEL_MM_H
#define BRAID_KERNEL_MM_H

/* The kernel's types of memory mappings and files; bpf/kernel.h has other types. */

#ifdef __bpf__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

struct maple_tree {
	void *ma_root;
};

struct maple_metadata {
	unsigned char end; /* the last used slot */
};

struct maple_range_64 {
	void *parent;
	unsigned long pivot[15]; /* the last index of each slot except the last */
	union {
		void *slot[16];
		struct {
			void *pad[15];
			struct maple_metadata meta; /* unless the last slot is in use */
		};
	};
};

struct maple_arange_64 {
	void *parent;
	unsigned long pivot[9];
	void *slot[10];
	unsigned long gap[10];
	struct maple_metadata meta;
};

struct super_block {
	unsigned int s_dev;
};

struct timespec64 {
	long long tv_sec;
	long tv_nsec;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_nlink;
	long long i_size;
	long long i_ctime_sec; /* since Linux 6.11 */
	unsigned int i_ctime_nsec;
};

struct inode___6_6 {
	struct timespec64 __i_ctime;
};

struct inode___before {
	struct timespec64 i_ctime;
};

struct file {
	struct inode *f_inode;
};

struct vm_special_mapping { /* vm_private_data of a mapping that the kernel made */
	const char *name;
};

struct vm_unmapped_area_info {
	unsigned long length; /* bytes of the requested address range */
};

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	unsigned long vm_flags;
	const void *vm_ops; /* NULL: anonymous memory */
	unsigned long vm_pgoff;
	struct file *vm_file;
	void *vm_private_data;
};

struct linux_binprm {
	struct file *file; /* file of the program or its interpreter */
};

#ifdef __bpf__
#pragma clang attribute pop
#endif

/* include/linux/mm.h */
#define VM_WRITE  0x2UL
#define VM_EXEC	  0x4UL
#define VM_SHARED 0x8UL

#endif
