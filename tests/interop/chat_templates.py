"""Chat templates for check_chat.py, written for it in the manner of those that models are published with: whatever
constructs they use is here. `tools`: the template is rendered with tools, too. `marked`: has generation blocks."""

CHATML = """{%- for message in messages -%}
    {{- '<|im_start|>' + message['role'] + '\\n' -}}
    {%- if message['role'] == 'assistant' -%}
        {%- generation -%}{{- message['content'] + '<|im_end|>' -}}{%- endgeneration -%}
    {%- else -%}
        {{- message['content'] + '<|im_end|>' -}}
    {%- endif -%}
    {{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""

CHATML_PLAIN = """{% for message in messages %}
{% if loop.first and message.role != 'system' %}
<|im_start|>system
Be of use.<|im_end|>
{% endif %}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}"""

LLAMA2 = """{%- if messages[0]['role'] == 'system' -%}
  {%- set rest = messages[1:] -%}{%- set system = messages[0]['content'] -%}
{%- else -%}
  {%- set rest = messages -%}{%- set system = false -%}
{%- endif -%}
{%- for message in rest -%}
  {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('turns must go user, assistant, user, assistant') -}}
  {%- endif -%}
  {%- if loop.index0 == 0 and system is not false -%}
    {%- set content = '<<SYS>>\\n' ~ system ~ '\\n<</SYS>>\\n\\n' ~ message['content'] -%}
  {%- else -%}
    {%- set content = message['content'] -%}
  {%- endif -%}
  {%- if message['role'] == 'user' -%}
    {{- bos_token + '[INST] ' + content.strip() + ' [/INST]' -}}
  {%- elif message['role'] == 'assistant' -%}
    {% generation %}{{- content.strip() + eos_token -}}{% endgeneration %}
  {%- endif -%}
{%- endfor -%}"""

LLAMA3 = """{{- bos_token }}
{%- if not date is defined %}{% set date = "01 Jan 2025" %}{% endif %}
{%- set ns = namespace(system='', calls=0) %}
{%- if messages[0].role == 'system' %}
    {%- set ns.system = messages[0].content | trim %}
    {%- set messages = messages[1:] %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday: ' + date + '\\n' }}
{%- if tools is not none %}
    {{- 'Functions, one a line:\\n' }}
    {%- for tool in tools %}
        {{- tool | tojson(indent=4) }}
        {{- '\\n' }}
    {%- endfor %}
{%- endif %}
{{- ns.system + '<|eot_id|>' }}
{%- for message in messages %}
    {%- if message.tool_calls is defined %}
        {%- if message.tool_calls | length != 1 %}
            {{- raise_exception('one call at a time') }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
        {%- generation %}
        {{- '{"name": "' ~ call.name ~ '", "parameters": ' ~ call.arguments | tojson ~ '}' }}
        {{- '<|eot_id|>' }}
        {%- endgeneration %}
        {%- set ns.calls = ns.calls + 1 %}
    {%- elif message.role in ['tool', 'ipython'] %}
        {{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' }}
        {%- if message.content is mapping or message.content is iterable and message.content is not string %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- '<|eot_id|>' }}
    {%- else %}
        {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' }}
        {%- if message.role == 'assistant' %}
            {%- generation %}{{ message.content | trim + '<|eot_id|>' }}{% endgeneration %}
        {%- else %}
            {{- message.content | trim + '<|eot_id|>' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{{- '\\n(' ~ ns.calls ~ ' calls)' if ns.calls > 0 }}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

QWEN = """{%- macro content_of(content, images) %}
    {%- if content is string %}{{- content }}
    {%- elif content is iterable and content is not mapping %}
        {%- for part in content %}
            {%- if 'image' in part or part.type == 'image' %}
                {%- if images %}{{- 'Picture ' ~ loop.index ~ ': ' }}{% endif %}{{- '<|image|>' }}
            {%- elif 'text' in part %}{{- part.text }}
            {%- else %}{{- raise_exception('a part of an unknown kind: ' ~ part) }}
            {%- endif %}
        {%- endfor %}
    {%- elif content is none or content is undefined %}{{- '' }}
    {%- else %}{{- raise_exception('unexpected content') }}{%- endif %}
{%- endmacro %}
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- content_of(messages[0].content, images=false) + '\\n\\n' }}{%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}{{- "\\n" }}{{- tool | tojson }}{%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + content_of(messages[0].content) + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(searching=true, last_query=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and not (message.content is string and message.content.startswith('<reply>') and message.content.endswith('</reply>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last_query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = content_of(message.content, true) %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>' + message.role + '\\n' }}
        {%- generation %}
        {%- if loop.index0 > ns.last_query and (loop.last or (not loop.last and thought)) %}
            {{- '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- content }}
        {%- endif %}
        {%- for call in message.tool_calls or [] %}
            {%- if (loop.first and content) or (not loop.first) %}{{- '\\n' }}{%- endif %}
            {%- if call.function %}{%- set call = call.function %}{%- endif %}
            {{- '<call>\\n{"name": "' }}{{- call.name }}{{- '", "arguments": ' }}
            {%- if call.arguments is string %}{{- call.arguments }}{%- else %}{{- call.arguments | tojson }}{%- endif %}
            {{- '}\\n</call>' }}
        {%- endfor %}
        {{- '<|im_end|>' }}
        {%- endgeneration %}
        {{- '\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<reply>\\n' }}{{- content }}{{- '\\n</reply>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("roles must take turns") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}{{- '"' + key + '": "' + val + '"' }}
                    {%- else %}{{- '"' + key + '": ' + val|tojson }}{%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {%- generation %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("ids of calls have nine characters") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
        {%- endgeneration %}
    {%- elif message["role"] == "assistant" %}
        {%- generation %}{{- " " + message["content"]|trim + eos_token }}{%- endgeneration %}
    {%- elif message["role"] in ("tool", "results") %}
        {{- '[RESULTS] {"content": ' + message.content|string + "}[/RESULTS]" }}
    {%- else %}
        {{- raise_exception("unknown role " ~ message.role) }}
    {%- endif %}
{%- endfor %}
"""

GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("turns must take turns") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}{%- set role = "model" -%}{%- else -%}{%- set role = message['role'] -%}{%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {%- if role == 'model' -%}
            {% generation %}{{ message['content'] | trim }}{{ '<end_of_turn>' }}{% endgeneration %}
        {%- else -%}{{ message['content'] | trim }}{{ '<end_of_turn>' }}{%- endif -%}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}{{ '<image>' }}
            {%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}
        {%- endfor -%}
        {{ '<end_of_turn>' }}
    {%- else -%}{{ raise_exception("unknown content") }}{%- endif -%}
    {{ '\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{'<start_of_turn>model\\n'}}{%- endif -%}
"""

TYPED_TOOLS = """{#- functions as type declarations -#}
{%- macro type_of(spec) -%}
  {%- if spec.type == "array" -%}
    {{- type_of(spec['items']) ~ "[]" if spec['items'] else "any[]" -}}
  {%- elif spec.type is defined and spec.type is iterable and spec.type is not string and spec.type[0] is defined -%}
    {{- spec.type | join(" | ") -}}
  {%- elif spec.oneOf -%}
    {%- for variant in spec.oneOf -%}{{- type_of(variant) -}}{%- if not loop.last -%}{{- " | " -}}{%- endif -%}{%- endfor -%}
  {%- elif spec.type == "string" -%}
    {%- if spec.enum -%}{{- '"' + spec.enum|join('" | "') + '"' -}}{%- else -%}{{- "string" -}}{%- endif -%}
  {%- elif spec.type == "number" or spec.type == "integer" -%}{{- "number" -}}
  {%- elif spec.type == "object" -%}
    {%- if spec.properties -%}
      {{- "{\\n" -}}
      {%- set required = spec.required or [] -%}
      {%- for name, inner in spec.properties.items() -%}
        {{- name -}}{%- if name not in required -%}{{- "?" -}}{%- endif -%}{{- ": " -}}{{- type_of(inner) -}}
        {%- if not loop.last -%}{{- ", " -}}{%- endif -%}
      {%- endfor -%}
      {{- "}" -}}
    {%- else -%}{{- "object" -}}{%- endif -%}
  {%- else -%}{{- "any" -}}{%- endif -%}
{%- endmacro -%}
{%- macro declare(tools, space="functions") -%}
  {{- "## " ~ space ~ "\\n\\nnamespace " + space + " {\\n\\n" -}}
  {%- for tool in tools -%}
    {%- set tool = tool.function -%}
    {{- "// " + tool.description | default("", true) + "\\n" -}}{{- "type " + tool.name + " = " -}}
    {%- if tool.parameters and tool.parameters.properties -%}
      {{- "(_: {\\n" -}}
      {%- for name, spec in tool.parameters.properties | dictsort -%}
        {%- if spec.description -%}{{- "// " + spec.description + "\\n" -}}{%- endif -%}
        {{- name + ("?" if name not in tool.parameters.required | default([])) + ": " + type_of(spec) -}}
        {%- if spec.default is defined -%}
          {%- if spec.enum -%}{{- ", // default: " + spec.default -}}{%- else -%}{{- ", // default: " + spec.default | tojson -}}{%- endif -%}
        {%- endif -%}
        {{- ",\\n" -}}
      {%- endfor -%}
      {{- "}) => any;\\n\\n" -}}
    {%- else -%}{{- "() => any;\\n\\n" -}}{%- endif -%}
  {%- endfor -%}
  {{- "} // " + space -}}
{%- endmacro -%}
{%- if tools -%}{{- "<|im_start|>system\\n" + declare(tools) + "<|im_end|>" -}}{%- endif -%}
{%- set last_user = namespace(index=-1) -%}
{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set last_user.index = loop.index0 -%}{%- endif -%}{%- endfor -%}
{%- for message in messages -%}
  {%- set body -%}
    {%- if message.content is string -%}{{- message.content -}}
    {%- else -%}{%- for part in message.content or [] if part.type == 'text' -%}{{- part.text | capitalize -}}{%- endfor -%}{%- endif -%}
  {%- endset -%}
  {%- if message.role == 'assistant' -%}
    {{- "<|im_start|>assistant" -}}
    {%- if message.thinking -%}{{- "<|thought|>" + message.thinking -}}{%- endif -%}
    {% generation %}{{- body -}}
    {%- for call in message.tool_calls | default([]) -%}
      {{- "<|to|>functions." + call.function.name + " " + call.function.arguments | tojson -}}
    {%- endfor -%}
    {{- "<|im_end|>" -}}{% endgeneration %}
  {%- else -%}
    {{- "<|im_start|>" ~ message.role ~ ("*" if loop.index0 == last_user.index else "") ~ body ~ "<|im_end|>" -}}
  {%- endif -%}
{%- endfor -%}"""

INDENTED = """{# white space is left to trim_blocks and lstrip_blocks #}
{% set roles = {'user': 'Question', 'assistant': 'Answer', 'system': 'Rules', 'tool': 'Result'} %}
{% for message in messages %}
    {% if message.role not in roles %}
        {% continue %}
    {% endif %}
    {% if loop.index > 40 %}
        {% break %}
    {% endif %}
    {{ roles[message.role] | upper }} {{ '%02d' % loop.index }}/{{ loop.length }}:
    {% if message.role == 'assistant' %}
{% generation %}
{{ message.content | default('(nothing)', true) | string | indent(2, first=true) }}
{{ eos_token }}
{% endgeneration %}
    {% else %}
{{ message.content | string | replace('\\n', ' / ') }}
    {% endif %}
    {% raw %}{{ not a tag }} {% neither %}{% endraw +%}

{% else %}
No messages.
{% endfor %}
"""

# Marks instead of lines between turns; calls and their results in fences; thoughts are dropped from earlier answers.
DEEPSEEK = """{%- if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}
{%- set ns = namespace(after_tool=false, prefix='', first=true) %}
{%- for m in messages if m.role == 'system' %}
    {%- set ns.prefix = ns.prefix ~ ('' if ns.first else '\\n\\n') ~ m.content %}{%- set ns.first = false %}
{%- endfor %}
{%- if tools %}
    {%- set ns.prefix = ns.prefix ~ '\\n\\n## Functions\\n' %}
    {%- for t in tools %}
        {%- set ns.prefix = ns.prefix ~ loop.index ~ '. `' ~ t.function.name ~ '`: ' ~ (t.function.description or 'no words') ~ '\\n```json\\n'
            ~ (t.function.parameters | tojson) ~ '\\n```\\n' %}
    {%- endfor %}
{%- endif %}
{{- bos_token ~ ns.prefix }}
{%- for m in messages if m.role != 'system' %}
    {%- if m.role == 'user' %}{%- set ns.after_tool = false %}{{- '<|user|>' ~ m.content }}
    {%- elif m.role == 'assistant' and m.tool_calls %}
        {{- '' if ns.after_tool else '<|assistant|>' }}{% generation %}
        {%- for call in m.tool_calls %}
            {{- '<|calls|>' if loop.first else '\\n' }}{{- call.type ~ '<|sep|>' ~ call.function.name ~ '\\n```json\\n' ~ call.function.arguments | tojson ~ '\\n```' }}
        {%- endfor %}
        {{- '<|calls_end|>' ~ eos_token }}{% endgeneration %}
    {%- elif m.role == 'assistant' %}
        {%- set said = m.content.split('</think>')[-1] if '</think>' in m.content else m.content %}
        {{- '' if ns.after_tool else '<|assistant|>' }}{% generation %}{{ said ~ eos_token }}{% endgeneration %}{%- set ns.after_tool = false %}
    {%- elif m.role == 'tool' %}
        {{- '<|results|>' if not ns.after_tool else '\\n' }}{{- '<|result|>' ~ m.content ~ '<|result_end|>' }}{%- set ns.after_tool = true %}
    {%- else %}{{- raise_exception('no such role: ' ~ m.role) }}
    {%- endif %}
{%- endfor %}
{{- '<|assistant|><think>\\n' if add_generation_prompt and not ns.after_tool }}"""

# A head of several marks, a word for each role, and the names of functions on a line of their own.
GLM = """[gMASK]<sop>
{%- set names = {'system': '<|system|>', 'user': '<|user|>', 'assistant': '<|assistant|>', 'tool': '<|observation|>'} -%}
{%- if tools -%}
<|system|>
# Tools
{% for tool in tools %}
{{ tool.function.name }} ({{ tool.function.parameters.get('properties', {}) | length }} arguments{{ ': ' ~ tool.function.parameters.properties.keys() | list | join(', ') if tool.function.parameters.properties }})
{{ tool | tojson(indent=2) }}
{% endfor %}
{%- endif -%}
{%- for m in messages -%}
{%- if m.role not in names -%}{{ raise_exception('a role that is unknown: ' + m.role) }}{%- endif -%}
{%- if m.role == 'assistant' and m.tool_calls -%}
  {%- for call in m.tool_calls %}
<|assistant|>{{ call.function.name }}
{% generation -%}
{%- for name, value in call.function.arguments | items -%}
<key>{{ name }}</key><value>{{ value if value is string else value | tojson }}</value>
{%- endfor -%}
{%- endgeneration -%}
  {%- endfor -%}
{%- else -%}
{{ names[m.role] }}
{% if m.role == 'assistant' %}{% generation %}{{ m.content | trim }}{% endgeneration %}{% else %}{{ m.content if m.content is string else m.content | tojson }}{% endif %}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}<|assistant|>
{{ '<think></think>' if enable_thinking is defined and not enable_thinking else '' }}{% endif -%}"""

# Turns in two kinds of brackets, results as a numbered list of documents that belong to the turn before, no mask.
COMMAND = """{{ bos_token }}{% macro turn(who, text) %}<|turn|><|{{ who }}|>{{ text }}<|turn_end|>{% endmacro %}
{%- set ns = namespace(results=[], number=0) -%}
{%- if messages and messages[0].role in ('system', 'developer') -%}
{%- set opening = messages[0].content -%}{%- set rest = messages[1:] -%}
{%- else -%}{%- set opening = 'Answer.' -%}{%- set rest = messages -%}{%- endif -%}
{{- turn('system', opening ~ ('\\n' ~ (tools | map(attribute='function') | map(attribute='name') | sort | join(' | ')) if tools else '')) -}}
{%- for message in rest -%}
  {%- if message.role == 'tool' -%}
    {%- set ns.results = ns.results + [{'document': ns.number, 'text': message.content}] -%}{%- set ns.number = ns.number + 1 -%}
    {%- if loop.last or loop.nextitem.role != 'tool' -%}{{- turn('results', ns.results | tojson) -}}{%- set ns.results = [] -%}{%- endif -%}
  {%- elif message.role == 'assistant' -%}
    {%- if message.tool_calls -%}
      {%- set plan -%}{%- for c in message.tool_calls -%}{{- '{' }}"id": "{{ c.id }}", "tool": {{ c.function.name | tojson }}, "with": {{ c.function.arguments | tojson }}{{ '}' -}}{{- ', ' if not loop.last -}}{%- endfor -%}{%- endset -%}
      {{- turn('bot', 'Actions: [' ~ plan ~ ']') -}}
    {%- else -%}{{- turn('bot', message.content or '') -}}{%- endif -%}
  {%- elif message.role == 'user' -%}{{- turn('user', message.content if message.content is string else (message.content | selectattr('type', 'eq', 'text') | map(attribute='text') | join('\\n'))) -}}
  {%- else -%}{{- raise_exception('who is ' ~ message.role ~ '?') -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|turn|><|bot|>{%- endif -%}"""

TEMPLATES = {
    "chatml": CHATML, "chatml_plain": CHATML_PLAIN, "llama2": LLAMA2, "llama3": LLAMA3, "qwen": QWEN,
    "mistral": MISTRAL, "gemma": GEMMA, "typed_tools": TYPED_TOOLS, "indented": INDENTED,
    "deepseek": DEEPSEEK, "glm": GLM, "command": COMMAND,
}
