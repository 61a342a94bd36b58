// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_idle.h"

/* A thread of the VM by its name. Java threads have their whole name. Others, and Java threads
 * whose name was not read, have the 15 bytes that the kernel stores. */
#define SERVICE(name, where)                                                               \
	{                                                                                  \
		.thread = name, .image = "libjvm.so", .source = "src/hotspot/share/" where \
	}

/* Functions in which the class library waits: java.util.concurrent's own code, down to the VM's
 * parking. */
#define PARKS                                                                          \
	"@(java.util.concurrent.*|jdk.internal.misc.Unsafe.park|sun.misc.Unsafe.park|" \
	"java.lang.Object.wait*)"

const struct idle_rule jvm_idle[] = {
	SERVICE("C[12] CompilerThre*", "compiler/compileBroker.cpp, init_compiler_threads"),
	SERVICE("Sweeper thread", "runtime/sweeper.cpp (JDK 8 to 19)"),
	SERVICE("GC Thread#*", "gc/shared/workerThread.cpp"),
	SERVICE("G1 @(Main Marker|Conc#*|Refine#*|Service|Young RemSet*)", "gc/g1"),
	SERVICE("Z@(Director|Driver*|Worker#*|Stat|Uncommitter*|Unmapper)", "gc/z"),
	SERVICE("Shenandoah*", "gc/shenandoah/shenandoahController.cpp"),
	SERVICE("StringDedup*", "gc/shared/stringdedup/stringDedupProcessor.cpp"),
	SERVICE("VM Thread", "runtime/vmThread.cpp, VMThread::name"),
	SERVICE("VM Periodic Tas*", "runtime/nonJavaThread.cpp, WatcherThread"),
	SERVICE("Reference Handl*", "../../java.base/share/classes/java/lang/ref/Reference.java"),
	SERVICE("Finalizer", "../../java.base/share/classes/java/lang/ref/Finalizer.java"),
	SERVICE("Common-Cleaner", "../../java.base/share/classes/jdk/internal/ref/CleanerFactory"),
	SERVICE("Signal Dispatch*", "runtime/os.cpp, initialize_jdk_signal_support"),
	SERVICE("Service Thread", "runtime/serviceThread.cpp"),
	SERVICE("Monitor Deflati*", "runtime/monitorDeflationThread.cpp"),
	SERVICE("Notification Th*", "runtime/notificationThread.cpp"),
	SERVICE("Attach Listener", "services/attachListener.cpp"),

	SERVICE("DestroyJavaVM", "runtime/threads.cpp, Threads::destroy_vm; named by java.c"),

	/* The first thread starts the one that runs main, and joins it. */
	{ .function = "CallJavaMainInNewThread",
	  .through = "@(*pthread_*join*|" IDLE_LIBC ")",
	  .native = true,
	  .syscalls = IDLE_LOCKS,
	  .source = "src/java.base/unix/native/libjli/java_md.c (JDK 14 to 25)" },
	{ .function = "java.util.concurrent.ThreadPoolExecutor.getTask",
	  .through = PARKS,
	  .source = "java.util.concurrent.ThreadPoolExecutor.getTask (JDK 8 to 25)" },
	{ .function = "java.util.concurrent.ForkJoinPool.awaitWork",
	  .through = PARKS,
	  .source = "java.util.concurrent.ForkJoinPool.awaitWork (JDK 8 to 25)" },
	{ .function = "java.util.TimerThread.mainLoop",
	  .through = PARKS,
	  .source = "java.util.TimerThread.mainLoop (JDK 8 to 25)" },
	{ .function = "java.net.ServerSocket.accept",
	  .through = "@(java.net.*|sun.nio.ch.*)",
	  .source = "java.net.ServerSocket.accept (JDK 8 to 25)" },
	{ .function = "sun.nio.ch.ServerSocketChannelImpl.accept",
	  .through = "sun.nio.ch.*",
	  .source = "sun.nio.ch.ServerSocketChannelImpl.accept (JDK 8 to 25)" },
	{ .function = "jdk.internal.ref.CleanerImpl.run",
	  .through = "@(java.lang.ref.ReferenceQueue.*|java.util.concurrent.*|"
		     "jdk.internal.misc.Unsafe.park|java.lang.Object.wait*)",
	  .syscalls = IDLE_LOCKS,
	  .source = "jdk.internal.ref.CleanerImpl.run (JDK 9 to 25)" },
	{ .function = "io.netty.channel.epoll.EpollEventLoop.epollWait*",
	  .through = "io.netty.channel.epoll.Native.epollWait*",
	  .syscalls = IDLE_POLLS,
	  .source = "EpollEventLoop.epollWait of netty's transport-classes-epoll (4.1)" },
	{ .function = "sun.nio.ch.SelectorImpl.lockAndDoSelect",
	  .through = "sun.nio.ch.*",
	  .syscalls = IDLE_POLLS,
	  .source = "sun.nio.ch.SelectorImpl.lockAndDoSelect (JDK 8 to 25)" },
	{}
};
