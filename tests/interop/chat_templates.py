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

TEMPLATES = {
    "chatml": CHATML, "chatml_plain": CHATML_PLAIN, "llama2": LLAMA2, "llama3": LLAMA3, "qwen": QWEN,
    "mistral": MISTRAL, "gemma": GEMMA, "typed_tools": TYPED_TOOLS, "indented": INDENTED,
}
