// SPDX-License-Identifier: GPL-2.0
/*
 * A laboratory model of amdgpu's path that pins user memory: a render node of
 * no GPU, which answers DRM_IOCTL_VERSION as amdgpu and DRM_AMDGPU_GEM_USERPTR
 * by a real mmu_interval_notifier and hmm_range_fault(), one attempt a call.
 * The parameter `form` pairs the notifier's sequence with the retry of -EBUSY:
 *   0  read inside the loop (6.1's form)
 *   1  read once, outside: the loop cannot succeed (c08972f55594 alone)
 *   2  no loop (342981fff328)
 */
#include <linux/fs.h>
#include <linux/hmm.h>
#include <linux/jiffies.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

static uint form;
module_param(form, uint, 0644);
MODULE_PARM_DESC(form, "0 healthy, 1 the fault, 2 the fix");

/* uapi/drm/drm.h and amdgpu_drm.h, as far as they are answered. */
struct drm_version_abi {
	int major, minor, patch;
	size_t name_len;
	char __user *name;
	size_t date_len;
	char __user *date;
	size_t desc_len;
	char __user *desc;
};
struct userptr_abi {
	__u64 addr, size;
	__u32 flags, handle;
};
#define LAB_VERSION _IOWR('d', 0x00, struct drm_version_abi)
#define LAB_USERPTR _IOWR('d', 0x51, struct userptr_abi)
#define LAB_GEM_CLOSE _IOW('d', 0x09, __u64)
#define LAB_READONLY 1u
#define LAB_CHUNK (2UL << 30) /* amdgpu_hmm.c: 2 GiB at a time */
#define LAB_MOST (1UL << 30)

struct pinning {
	struct mmu_interval_notifier notifier;
	struct mutex lock; /* plays the driver's notifier lock */
	unsigned long *pfns;
};

static bool invalidate(struct mmu_interval_notifier *n, const struct mmu_notifier_range *why, unsigned long seq)
{
	struct pinning *r = container_of(n, struct pinning, notifier);

	if (!mmu_notifier_range_blockable(why))
		return false;
	mutex_lock(&r->lock);
	mmu_interval_set_seq(n, seq);
	mutex_unlock(&r->lock);
	return true;
}

static const struct mmu_interval_notifier_ops lab_ops = { .invalidate = invalidate };

/* The mmap lock is held for reading. */
static int get_pages(struct pinning *r, struct hmm_range *h, unsigned long start, unsigned long end)
{
	const uint how = READ_ONCE(form);
	unsigned long at = start;

	h->notifier_seq = mmu_interval_read_begin(&r->notifier);
	while (at < end) {
		unsigned long deadline = jiffies + msecs_to_jiffies(HMM_RANGE_DEFAULT_TIMEOUT);
		int err;

		h->start = at;
		h->end = min(at + LAB_CHUNK, end);
		h->hmm_pfns = r->pfns + ((at - start) >> PAGE_SHIFT);
		for (;;) {
			if (how == 0)
				h->notifier_seq = mmu_interval_read_begin(&r->notifier);
			err = hmm_range_fault(h);
			if (err != -EBUSY)
				break;
			if (how == 2 || time_after(jiffies, deadline))
				return -EAGAIN;
			if (fatal_signal_pending(current))
				return -EINTR;
		}
		if (err)
			return err;
		at = h->end;
	}
	return 0;
}

static int pin(const struct userptr_abi *q)
{
	struct mm_struct *mm = current->mm;
	struct hmm_range h = { };
	struct pinning *r;
	int err = -ENOMEM;

	if (!q->size || q->size > LAB_MOST || ((q->addr | q->size) & ~PAGE_MASK) || q->addr + q->size < q->addr)
		return -EINVAL;
	r = kzalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	mutex_init(&r->lock);
	r->pfns = kvcalloc(q->size >> PAGE_SHIFT, sizeof(*r->pfns), GFP_KERNEL);
	if (!r->pfns)
		goto free_range;
	err = mmu_interval_notifier_insert(&r->notifier, mm, q->addr, q->size, &lab_ops);
	if (err)
		goto free_pfns;
	h.notifier = &r->notifier;
	h.default_flags = HMM_PFN_REQ_FAULT | (q->flags & LAB_READONLY ? 0 : HMM_PFN_REQ_WRITE);
	mmap_read_lock(mm);
	err = get_pages(r, &h, q->addr, q->addr + q->size);
	mmap_read_unlock(mm);
	mutex_lock(&r->lock);
	if (!err && mmu_interval_read_retry(&r->notifier, h.notifier_seq))
		err = -EAGAIN;
	mutex_unlock(&r->lock);
	mmu_interval_notifier_remove(&r->notifier);
free_pfns:
	kvfree(r->pfns);
free_range:
	kfree(r);
	return err;
}

static int version(struct drm_version_abi __user *to)
{
	struct drm_version_abi v;

	if (copy_from_user(&v, to, sizeof(v)))
		return -EFAULT;
	if (v.name && copy_to_user(v.name, "amdgpu", min_t(size_t, v.name_len, 6)))
		return -EFAULT;
	v.major = 3;
	v.minor = 57;
	v.patch = 0;
	v.name_len = 6;
	v.date_len = 0;
	v.desc_len = 0;
	return copy_to_user(to, &v, sizeof(v)) ? -EFAULT : 0;
}

static long lab_ioctl(struct file *f, unsigned int request, unsigned long argument)
{
	struct userptr_abi q;

	switch (request) {
	case LAB_VERSION:
		return version((void __user *)argument);
	case LAB_GEM_CLOSE:
		return 0;
	case LAB_USERPTR:
		if (copy_from_user(&q, (void __user *)argument, sizeof(q)))
			return -EFAULT;
		return pin(&q);
	default:
		return -EINVAL;
	}
}

static const struct file_operations lab_files = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = lab_ioctl,
};
static struct miscdevice lab_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "userptrlab",
	.nodename = "dri/renderD128",
	.mode = 0666,
	.fops = &lab_files,
};
module_misc_device(lab_device);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Model of amdgpu's userptr path in three forms");
