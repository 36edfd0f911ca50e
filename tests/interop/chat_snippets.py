"""Small templates, one or a few constructs each, for check_chat.py."""

CONTEXT = {
    "a": 7, "b": -3, "f": 2.5, "big": 1e22, "t": True, "n": None, "s": "Hello, Wörld", "empty": "", "l": [3, 1, 2],
    "words": ["b", "A", "c", "a"], "d": {"z": 1, "y": {"x": [1, {"k": "v"}]}, "items": "shadow", "Title": 3},
    "users": [{"name": "Ann", "age": 31, "tags": ["x"]}, {"name": "bob", "age": 25, "tags": []},
              {"name": "Cy", "age": 31, "ok": True}],
    "text": "  line one\n\tline two\r\nthree  \n", "uni": "ǆabc ŒUVRE straße ΑΣ. ﬁn İ ß",
    "nested": [[1, [2, 3]], {"a": (None)}], "u1": "\x7f\u00ad\u200b\ue000é'\"\\", "floats": [0.1, 1e16, 1e-5, 123456789.123, -0.0, 3.0],
}

EXPRESSIONS = """
1 + 2 * 3 - 4 / 2
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7.5 // 2, -7.5 % 2
2 ** 3 ** 2
2 ** -1
-2 ** 2
1 / 0
a ~ b ~ f ~ t ~ n ~ s
a + s
s * 2, 2 * s, [1] * 3
[1, 2] + [3]
(1,) + (2, 3), (), (1,)
'x' 'y'
"tab\\tnew\\nuni\\u00e9 \\x41 \\q \\' \\101"
'a' < 'b' < 'c', 1 < 2 > 1, 1 <= 1.0, 'a' > 1
1 == 1.0, true == 1, 'a' == 'a', [1] == [1.0], none == false, {'a': 1} == {'a': 1.0}
a in l, 3 in l, 'ell' in s, 'z' in d, 'q' not in d, none in [none], 1 in 'a'
not a, not empty, not not l, a and b, a or b, empty or 'x', n and 1
'yes' if a else 'no', 'yes' if empty, ('q' if n) is defined, 1 if false else 2 if false else 3
s[0], s[-1], s[7:], s[:5], s[::-1], s[1:9:3], s[-3:], s[20:], s[8]
l[0], l[-1], l[1:], l[::-1], l[5:], l[-2:], l[::2], l[3:0:-1], l[true]
l[10], l['x'], d['nope'], d.nope
l[10].x
undefined_name
undefined_name.x
undefined_name + 1
undefined_name()
undefined_name == other_undefined, undefined_name is defined, undefined_name is undefined
d.z, d['z'], d.y.x[1].k, d['items'], d.items is callable, d.Title
d.items() | list, d.keys() | list, d.values() | list | length
d.get('z'), d.get('q'), d.get('q', 5)
users[0].name, users.0.name, users[-1]['age']
d, l, s, n, t, f, nested, users
u1, [u1], {'k': u1}
floats, 1e100, 1.5e-7, 100000000000000000.0, 1e15, big
range(3) | list, range(1, 10, 4) | list, range(5, 0, -2) | list, range(0) | list
range(3)[1], range(3) | length, 2 in range(3)
range(200000) | length
dict(a=1, b=2), dict({'x': 1}, y=2), dict([('k', 1)])
s.upper(), s.lower(), s.title(), s.capitalize(), s.split(', '), s.split('o', 1), text.split(), text.split(none, 1)
uni.upper(), uni.lower(), uni.title(), uni.capitalize(), uni | upper, uni | lower, uni | title, uni | capitalize
'ΣΑΣ ΣΑΣ'.lower(), "they're bill's".title(), "they're bill's-x (y" | title, 'ab1c'.title()
text.strip(), text.lstrip(), text.rstrip(), 'xxaxx'.strip('x'), 'xyaz'.lstrip('yx'), '..a.'.rstrip('.')
text.splitlines(), text.splitlines(true), 'a\\u2028b'.splitlines(), ''.splitlines()
s.startswith('He'), s.startswith(('x', 'H')), s.endswith('ld'), s.startswith('W', 7), s.endswith('o', 0, 5), s.startswith('')
s.find('o'), s.find('zz'), s.rfind('o'), s.index('W'), s.count('l'), ''.count(''), 'aaa'.count('aa')
s.index('zz')
s.replace('l', 'L'), s.replace('l', 'L', 1), 'abc'.replace('', '-'), 'abc'.replace('', '-', 2)
'a-b-c'.split('-'), 'a-b-c'.rsplit('-', 1), 'a-b-c'.partition('-'), 'a-b-c'.rpartition('-'), 'abc'.partition('-')
' a  b c '.rsplit(none, 1), ' a  b c '.split(none, 0), 'a'.split(none, 3)
'-'.join(words), ', '.join(['a'])
'-'.join(l)
'7'.zfill(3), '-7'.zfill(4), 'ab'.center(7, '*'), 'ab'.center(6), 'abc'.center(8, '.'), 'ab'.ljust(4, '.'), 'ab'.rjust(4)
'AB'.isupper(), 'aB'.islower(), '12'.isdigit(), 'a1'.isalnum(), 'ab '.isalpha(), ' '.isspace(), ''.isalpha(), 'É'.isupper()
'prefix-x'.removeprefix('prefix-'), 'x.py'.removesuffix('.py'), 'x'.removesuffix('')
'{} and {}'.format(1, 'b'), '{0}{1}{0}'.format('a', 'b'), '{x}'.format(x=3), '{{}}'.format()
'%s-%d-%05.2f-%r-%%' % ('a', 3, 2.5, 'q'), '%s' % 'one', '%(k)s' % {'k': 1}, '%-5s|%5s|' % ('a', 'b'), '%03d' % -7
'%d' % 'x'
'%s %s' % 'a'
l.append(1)
d.update({})
l.append is defined, d.pop is defined
l.index(1), l.count(2), (1, 2).index(2)
l.index(99)
s | length, l | length, d | count, empty | length, undefined_name | length
a | length
words | join, words | join('-'), users | join(', ', attribute='name'), l | join('|'), s | join('.')
words | sort, words | sort(reverse=true), words | sort(case_sensitive=true), users | sort(attribute='age') | map(attribute='name') | list
users | sort(attribute='age,name', reverse=true) | map(attribute='name') | join(' ')
[1, 'a'] | sort
words | unique | list, [1, 1.0, true, 2] | unique | list, users | unique(attribute='age') | map(attribute='name') | list
d | dictsort, {'b': 1, 'A': 2} | dictsort, {'b': 1, 'A': 2} | dictsort(true), {'b': 1, 'a': 2} | dictsort(by='value', reverse=true)
l | first, l | last, s | first, s | last, [] | first is defined, d | first
[] | first
l | min, l | max, words | min, words | max, users | max(attribute='age'), [] | max is defined
l | sum, users | sum(attribute='age'), [1.5, 2] | sum, l | sum(start=10)
l | reverse | list, s | reverse, l | list, s | list, d | list
users | map(attribute='name') | list, words | map('upper') | list, users | map(attribute='tags.0') | list
users | map(attribute='ok', default='-') | list, words | map('replace', 'a', 'Q') | join
users | selectattr('age', 'equalto', 31) | list | length, users | selectattr('ok') | map(attribute='name') | list
users | rejectattr('age', 'gt', 30) | map(attribute='name') | list, users | selectattr('ok', 'defined') | list | length
l | select('odd') | list, l | reject('odd') | list, [0, 1, '', 'a'] | select | list, l | select('divisibleby', 3) | list
'T' if (users | selectattr('age', 'equalto', 99)) else 'F', 'T' if [] | select else 'F'
'T' if ([] | map(attribute='x')) else 'F', users | selectattr('age', 'in', [25]) | list | length
users | map(attribute='name') | length
d | items | list, undefined_name | items | list
n | default('x'), undefined_name | default('x'), empty | default('x', true), undefined_name | d(5), undefined_name | default
s | replace('o', '0'), s | replace('l', 'L', 2), 5 | replace(5, 6), s | trim, text | trim, 'xax' | trim('x')
text | indent, text | indent(2, true), text | indent('> ', blank=true), 'a\\n\\nb' | indent(1), 'a' | indent(first=true)
'42' | int, '4.9' | int, 'x' | int, 'x' | int(7), 3.9 | int, -3.9 | int, '1_000' | int, ' 5 ' | int, 'ff' | int(0, 16), '0x1f' | int(base=16), none | int, true | int
'2.5' | float, 'x' | float, 3 | float, '1e3' | float, 'x' | float(1.5)
2.675 | round(2), 2.5 | round, 3.5 | round, 42 | round, 42.55 | round(1, 'floor'), 42.51 | round(1, 'ceil')
-3 | abs, -2.5 | abs, true | abs
'%s!' | format('a'), '%(x)s' | format(x=1), 'a b  c' | wordcount, 'ab' | center(6)
s | string, l | string, 1.0 | string, none | string, s | upper | lower | capitalize
'<a>&"\\'' | e, '<b>' | escape, '<b>' | safe, ('<b>' | safe) ~ '<i>', ('a' | safe) + 'b'
d | tojson, l | tojson, s | tojson, n | tojson, t | tojson, f | tojson, big | tojson, users | tojson(indent=2), [] | tojson(indent=2), {} | tojson(indent=1)
d | tojson(sort_keys=true), d | tojson(separators=(',', ':')), s | tojson(ensure_ascii=true), '\\u2028<&>\\x01\\x7f"\\\\' | tojson, {1: 2, none: 3, true: 4, 1.5: 5} | tojson
[1, [2, {'a': [], 'b': {}}]] | tojson(indent=4), '😀' | tojson(ensure_ascii=true)
undefined_name | tojson
a is odd, a is even, a is divisibleby 7, a is divisibleby(2), a is number, f is float, a is integer, t is integer, t is number, t is boolean
s is string, d is mapping, l is sequence, s is iterable, d is iterable, a is iterable, n is none, n is not none, l is mapping
a is eq 7, a is == 7, a is gt 3, a is lt 3, a is ge(7), a is ne 7, a is equalto(7), a is sameas a, n is sameas none, true is sameas true, 1 is sameas true
'a' is in s, 3 is in [1, 3], 3 is not in l, s is lower, 'ab' is lower, 'AB' is upper, 'x' is filter, 'upper' is filter, 'odd' is test
false is false, true is true, 1 is true, range is callable, s is callable, undefined_name is callable, namespace is callable
s is nope
s | nope
a is odd and b is odd or false, not a is odd, a is not odd
[1, 2,], {'a': 1,}, (1, 2,)
{'a': 1, 'b': [1, 2]}, {1: 'x'}, {(1, 2): 3}
{[1]: 2}
[x]
(a, b) == (7, -3), (1, 2) < (1, 3), [1] < [0, 5]
strftime_now is defined or true
raise_exception('no')
1_000, 1.5e3, 0, 007
9 if a > 5 else 8, (1 if a else 2) + 1
s.nope is defined, s.nope, d.items.x is defined
a.real is defined or true
d['y']['x'][0], d.y['x'].1.k
loop is defined
n.x
a[0] is defined
'a' ~ 1 + 2 ~ 'b'
- 3 | abs, -a | string, +a
1 if 2 > 1 and not 3 == 3 else 0
"a" in ["a"] and "b" not in ["a"]
[] is iterable, {} is mapping, '' is string, 0 is number, none is string
true and false or true, none is none, True, False, None
namespace(a=1).a, namespace({'x': 2}).x, namespace() is defined, namespace(_a=1)
words | map('length') | list
"%s" | format("a", "b")
"{}".format()
'a' | center(1), 'abc' | center(2)
""".strip().split("\n")

BLOCKS = [
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ x }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}|{{ loop.nextitem }}|{{ loop.cycle('a', 'b') }}|{{ loop.changed(x > 1) }},{% endfor %}",
    "{% for x in [] %}x{% else %}none{% endfor %}{% for x in undefined_name %}x{% else %}u{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}E{% endfor %}",
    "{% for x in l %}{% break %}{% else %}E{% endfor %}|{% for x in l %}{% continue %}{% else %}E{% endfor %}",
    "{% for x in l if x != 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% endfor %}",
    "{% for x in l if false %}{% else %}E{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for k, v in d | items %}{{ k }}{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [1] %}{% endfor %}", "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% for x in a %}{% endfor %}", "{% for x in n %}{% endfor %}",
    "{% for c in s %}{{ c }}.{% endfor %}{% for i in range(3) %}{{ i }}{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% for i in l %}{{ x }}{% set x = x + i %}{{ x }};{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set ns = namespace(x=0, l=[]) %}{% for i in l %}{% set ns.x = ns.x + i %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.x }}{{ ns.l }}",
    "{% set ns = namespace() %}{% set ns._x = 1 %}", "{% set d.x = 1 %}", "{% set q.x = 1 %}", "{{ namespace().x }}", "{% set ns = namespace(a=1) %}{{ ns['a'] }}{{ ns.b is defined }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, e) = [3, 4] %}{{ c }}{{ e }}", "{% set a, b = [1] %}",
    "{% set x %}a{{ a }}b{% endset %}{{ x }}{{ x | length }}{% set y | upper | replace('A', 'q') %}abc{% endset %}{{ y }}",
    "{% set x %}{% set z = 5 %}{{ z }}{% endset %}{{ x }}{{ z is defined }}",
    "{% set true = 1 %}", "{% set x = %}", "{% if %}{% endif %}",
    "{% if a %}1{% elif b %}2{% else %}3{% endif %}{% if n %}1{% elif b %}2{% else %}3{% endif %}{% if n %}1{% elif n %}2{% else %}3{% endif %}{% if n %}x{% endif %}",
    "{% macro m(x, y=2, z=x) %}{{ x }}{{ y }}{{ z }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(y=5, x=4) }}{{ m() }}{{ m(1, z=9) }}",
    "{% macro m(x) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}{{ m() }}",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(q=2) }}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1, x=2) }}",
    "{% macro m(n) %}{% if n > 0 %}{{ n }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}", "{% macro m(n) %}{{ m(n) }}{% endmacro %}{{ m(3) }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}in{{ a }}{% endcall %}",
    "{% macro m(l) %}{% for x in l %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(v, i) m(l) %}{{ i }}:{{ v }} {% endcall %}",
    "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}",
    "{% macro m() %}{{ outer }}{% endmacro %}{% set outer = 3 %}{{ m() }}{% set outer = 4 %}{{ m() }}",
    "{% macro m() %}{% set a = 9 %}{{ a }}{% endmacro %}{{ m() }}{{ a }}{{ m() | upper }}{{ m() is string }}",
    "{% for i in l %}{% macro q(x) %}{{ x }}{{ i }}{% endmacro %}{{ q(1) }}{% endfor %}",
    "{% filter upper %}abc{{ s }}{% endfilter %}{% filter replace('a', 'b') | upper %}aa{% endfilter %}",
    "{% with x = 1, y = 2 %}{{ x }}{{ y }}{% endwith %}{{ x is defined }}", "{% with x = a %}{% set a = 1 %}{{ a }}{{ x }}{% endwith %}{{ a }}", "{% with %}{% set k = 1 %}{{ k }}{% endwith %}{{ k is defined }}",
    "{# comment #}a{#- b -#} c {#+ d +#} e", "{% raw %}{{ x }}{% if %}{% endraw %}", "a {%- raw -%} {{ b }} {%- endraw -%} c", "  {% raw %}\n x \n  {% endraw %}\ny",
    "  {% if true %}\n  x\n  {% endif %}\ny\n", "a\n  {%- if true -%}\n  x\n  {%- endif -%}\n  y\n\n", "a  {%+ if true %}  b  {% endif +%}\nc", "  {{ a }}  \n  {{- a -}}  \n",
    "x {% if true %} y {% endif %} z", "\n\n{% set x = 1 %}\n\n{{ x }}\n\n", "a\r\nb\rc\n", "   {# c #}\n  {# d #} e\n", "{%- if true %}\n\n a{%- endif %}", "a\n\t {% if true %}b{% endif %}",
    "{{ a }}\n", "{{ a }}\n\n", "{{'{{'}}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{{'a': 1}}}", "{{ '}}' }}{{ \"%}\" }}", "{% set x = '%}' %}{{ x }}",
    "{% for x in l recursive %}{{ x }}{% if x == 3 %}{{ loop([7, 8]) }}{% endif %}{{ loop.depth }}{% endfor %}", "{% for x in l %}{{ loop([1]) }}{% endfor %}",
    "{% set g = l | map('string') %}{% for x in g %}{{ x }}{% endfor %}{% for x in g %}{{ x }}{% else %}used{% endfor %}",
    "{% set g = l | select %}{{ g | first }}{{ g | list }}", "{% for x in l %}{{ x }}{% for y in words %}{{ loop.index }}{{ y }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% set outer_loop = namespace(i=0) %}{% for x in l %}{% set outer_loop.i = loop.index %}{% for y in l if y > outer_loop.i %}{{ y }}{% endfor %};{% endfor %}",
    "{% if a > 5 and s | length > 3 and 'W' in s %}ok{% endif %}", "{% if not (n is not none) %}ok{% endif %}", "{% if l and l[0] == 3: %}c{% endif %}",
    "{{ a", "{% if a %}", "{% for %}", "{% endif %}", "{% nope %}", "{{ a }", "{{ 'x }}", "{# x", "{% raw %}x", "{{ a b }}", "{{ (a }}", "{{ a) }}", "{{ [a }}", "{{ a. }}", "{{ | upper }}",
    "{% for x in l %}{% endif %}", "{% break %}", "{% macro %}{% endmacro %}", "{% set %}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ f(a=1, 2) }}", "{% do l.append(1) %}", "{% include 'x' %}",
    "{% for i in range(3) %}{% set x = i %}{% endfor %}{{ x is defined }}", "{% set x = 5 %}{% macro m(x=x) %}{{ x }}{% endmacro %}{{ m() }}",
    "{{ 'a' if a is defined and a is odd else 'b' }}{{ ('b' ~ 'c') if n else ('d' ~ 'e') }}", "{{ dict(**{'a': 1}) }}{{ range(*[1, 3]) | list }}",
    "{% generation %}x{{ a }}{% set q = 1 %}{% endgeneration %}{{ q is defined }}", "{% for x in l %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "{{ s.split()[0] }}{{ s.split(',')[-1].strip() }}{{ (s | upper).lower() }}{{ 'a,b'.split(',') | last }}", "{{ users[0].tags[0] }}{{ users[1].tags[0] }}{{ users[2].tags is defined }}",
    "{% set content = s %}{% set content = content.split('o')[-1].lstrip(' ') %}{{ content }}", "{{ l | map('int') | map('string') | join('+') }}", "{{ 'é'.upper() }}{{ 'é' | length }}{{ s[8:] }}",
    "{% for m in users | selectattr('age', '>', 26) | list %}{{ m.name }}{% endfor %}", "{% for m in users[1:] %}{{ loop.index0 }}{{ m.name }}{% endfor %}", "{% for key in d.keys() | sort %}{{ key }}{% endfor %}",
]

SNIPPETS = [f"{{{{ {e} }}}}" if "," not in e else f"{{% set r = [{e}] %}}{{% for i in r %}}<{{{{ i }}}}>{{% endfor %}}"
            for e in EXPRESSIONS] + BLOCKS
