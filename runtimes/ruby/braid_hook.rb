# frozen_string_literal: true

# SPDX-License-Identifier: GPL-2.0-or-later
#
# `braid calls -- COMMAND` has Ruby load this. Its probes at methods fire only while something wants
# to know of calls and returns: here a function of Ruby's own that does nothing, as that takes much
# less time than a TracePoint does. A Ruby without such probes is left alone.
$LOAD_PATH.delete(__dir__)
begin
  probed = RUBY_ENGINE == 'ruby' && begin
    maps = File.binread('/proc/self/maps')
    path = maps[%r{/[^\n]*/libruby[^/\n]*\.so[^/\n]*}n] || '/proc/self/exe'
    File.binread(path).include?("ruby\0method__entry\0".b)
  rescue SystemCallError
    true # no /proc here
  end
  if probed
    begin
      verbose, $VERBOSE = $VERBOSE, nil
      loaded = $LOADED_FEATURES.dup
      known = defined?(Fiddle)
      require 'fiddle'
      add = Fiddle::Function.new(Fiddle::Handle::DEFAULT['rb_add_event_hook'],
                                 [Fiddle::TYPE_VOIDP, Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP],
                                 Fiddle::TYPE_VOID)
      # RUBY_EVENT_CALL | RUBY_EVENT_RETURN, and false
      add.call(Fiddle::Handle::DEFAULT['rb_gc_count'], 0x18, 0)
    rescue StandardError, LoadError
      TracePoint.new(:call, :return) {}.enable
    ensure
      # As if it had not been here: the program may want another version of that gem. (2.7 cannot
      # load it a second time.)
      if loaded && !known && RUBY_VERSION >= '3'
        $LOADED_FEATURES.reject! { |file| !loaded.include?(file) }
        Gem.loaded_specs.delete('fiddle') if defined?(Gem) && Gem.respond_to?(:loaded_specs)
        Object.__send__(:remove_const, :Fiddle) if defined?(Fiddle)
      end
      $VERBOSE = verbose
    end
  end
rescue StandardError
  # then methods in Ruby are not seen
end
