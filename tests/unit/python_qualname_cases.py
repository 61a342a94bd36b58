# SPDX-License-Identifier: GPL-2.0-or-later
# A source for t_python_qualname, to be compiled and never run. Each `#: NAME QUALNAME` tells what
# the code object of that name is that starts, or else goes on, at the line; "-": not for certain.
import functools


def plain(a, b=lambda x: x,  #: plain plain  #: <lambda> <lambda>
          *args, **kwargs) -> "str: lambda":  #: <lambda> -
    """def not_one(): pass
    class NotOneEither: lambda: 1
"""
    return a \
        + (lambda: [i for i in b])()  #: <listcomp> plain.<locals>.<lambda>.<locals>.<listcomp>


@functools.lru_cache(maxsize=None)  #: decorated decorated
# A comment between.
@functools.wraps(lambda: 1)  #: <lambda> <lambda>  #: decorated decorated

def decorated(a=[i for i in (j for j in range(3))]):  #: <listcomp> <listcomp>  #: <genexpr> <genexpr>
    for x in (y for y in a if (lambda: y)):  #: <lambda> decorated.<locals>.<genexpr>.<lambda>
        if x: return {k: v for k, v in zip(a, {i for i in x})}  #: <setcomp> decorated.<locals>.<setcomp>
    return {
        k: 1  #: <dictcomp> decorated.<locals>.<dictcomp>
        for k in a} if a else {
        lambda: k: (  #: <lambda> decorated.<locals>.<dictcomp>.<lambda>
            "k") for k in a}


class Outer(functools.partial if (lambda: 1) else object):  #: Outer Outer  #: <lambda> <lambda>
    x = lambda self: (lambda: 2)  #: <lambda> -
    y = [i for i in (lambda: 3)()]  #: <listcomp> Outer.<listcomp>  #: <lambda> Outer.<lambda>
    if x:
        def method(self):  #: method Outer.method
            class Local: z = lambda: 1; t = 2  #: Local Outer.method.<locals>.Local
            # In none of both:
            w = lambda: 1  #: <lambda> Outer.method.<locals>.<lambda>
            async def inner(a=lambda: 1):  #: inner Outer.method.<locals>.inner
                def inner():  #: inner Outer.method.<locals>.inner.<locals>.inner
                    yield 1  #: inner Outer.method.<locals>.inner.<locals>.inner
                await a  #: inner Outer.method.<locals>.inner
                async for x in a:
                    pass
                return [x async for x in a if x]  #: <listcomp> Outer.method.<locals>.inner.<locals>.<listcomp>
            return w  #: method Outer.method  #: inner -
    else:
        class Inner:  #: Inner Outer.Inner
            class Inner: pass  #: Inner Outer.Inner.Inner

            def method(self): return lambda: 1  #: <lambda> Outer.Inner.method.<locals>.<lambda>
    after = lambda: 1  #: <lambda> Outer.<lambda>


def makes_globals():
    if 1: x = 1; global Shown, shown, not_defined
    class Shown:  #: Shown Shown
        def method(self): pass  #: method Shown.method
        global shown_too
        def shown_too(self): pass  #: shown_too shown_too
        def shown(self): pass  #: shown Shown.shown
    def shown():  #: shown shown
        def shown(): pass  #: shown shown.<locals>.shown
        return lambda: 1  #: <lambda> shown.<locals>.<lambda>
    def not_shown(): pass  #: not_shown makes_globals.<locals>.not_shown


def texts(a):
    b = f"{a!r:>{len(a)}} {{lambda}} {', '.join(x for x in a)}"  #: <genexpr> texts.<locals>.<genexpr>
    c = rf'\{a}' fR"""{a["'"]} " \"""" f'\N{DIGIT ONE}{a:{{1: "2"}[1]}}' 'def'
    d = b'"' rb"\" 'lambda" Rb'\''
    e = 1if a else"for" in"b"or 0x1fin(1,) or 1.e5or.5j
    return f'''
{(lambda: a)()}'''  #: texts texts


def chained(a, *, k=lambda x=lambda: 1, *y: (x, [x for x in y])):  #: <listcomp> <lambda>.<locals>.<listcomp>
    # The lambdas differ in their scopes, but not in the scopes' names.
    g = (lambda: 1, lambda: 2)  #: <lambda> chained.<locals>.<lambda>
    s = a[lambda: 1:lambda: 2]  #: <lambda> chained.<locals>.<lambda>
    d = {1: lambda: 1, 2: [
        lambda a: lambda b: a  #: <lambda> -
        for _ in a]}
    t = [(
        i, [j for j in i])  #: <listcomp> chained.<locals>.<listcomp>.<listcomp>
        for i in [k for k in a]  #: <listcomp> chained.<locals>.<listcomp>
        for j in (
            l for l in k)  #: <genexpr> chained.<locals>.<listcomp>.<genexpr>
        if (
            m for m in j)]  #: <genexpr> chained.<locals>.<listcomp>.<genexpr>
    # Up to 3.7, both start where the first one has its element.
    u = [  #: <listcomp> chained.<locals>.<listcomp>
        [j for j in i]  #: <listcomp> -
        for i in a]
    gen = (  #: <genexpr> chained.<locals>.<genexpr>
        x
        for x in a
        if x  #: <genexpr> chained.<locals>.<genexpr>
    )
    return a  #: <genexpr> -  #: chained chained
