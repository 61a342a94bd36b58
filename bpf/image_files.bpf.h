/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_IMAGE_FILES_BPF_H
#define BRAID_IMAGE_FILES_BPF_H

/* Images by file: filled by user space when it finds them (core/target/image_files.h). */

#include "bpf/scratch.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, IMAGE_FILES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC); /* only user space adds entries */
	__type(key, struct image_key);
	__type(value, struct image_rec);
} image_files __weak SEC(".maps");

#define NSEC_PER_SEC	 1000000000ULL
#define CTIME_NSEC_FLAGS (1U << 31) /* I_CTIME_QUERIED, include/linux/fs.h; stat(2) hides it */

static __always_inline __u64 inode__ctime_ns(const struct inode *inode)
{
	const struct inode___before *before = (const void *)inode;
	const struct inode___6_6 *since_6_6 = (const void *)inode;
	struct timespec64 time = {};

	if (bpf_core_field_exists(inode->i_ctime_sec)) {
		time.tv_sec = BPF_CORE_READ(inode, i_ctime_sec);
		time.tv_nsec = BPF_CORE_READ(inode, i_ctime_nsec);
	} else if (bpf_core_field_exists(since_6_6->__i_ctime)) {
		time = BPF_CORE_READ(since_6_6, __i_ctime);
	} else if (bpf_core_field_exists(before->i_ctime)) {
		time = BPF_CORE_READ(before, i_ctime);
	}
	return time.tv_sec * NSEC_PER_SEC + (time.tv_nsec & ~CTIME_NSEC_FLAGS);
}

static __always_inline void image_key__of_file(struct image_key *key, const struct file *file)
{
	const struct inode *inode = BPF_CORE_READ(file, f_inode);

	key->ino = BPF_CORE_READ(inode, i_ino);
	key->size = BPF_CORE_READ(inode, i_size);
	key->ctime_ns = inode__ctime_ns(inode);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
}

#endif
