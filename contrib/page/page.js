// SPDX-License-Identifier: Apache-2.0
// Draws the page of a straggler report from the JSON in the element "data". D3 5 to 7 have the functions used here.
'use strict';
(() => {
  const began = performance.now();
  const data = JSON.parse(document.getElementById('data').textContent);
  const report = data.report, time = data.time, ranks = report.ranks, size = report.size;
  const hasCharts = typeof d3 !== 'undefined' && time.count > 0;
  const at = id => document.getElementById(id);
  const late = report.late_rank;

  // --- texts ---

  function span(us) {
    const units = [[1e6, 's'], [1e3, 'ms'], [1, 'us']];
    const [unit, name] = units.find(([least]) => us >= least) || units[2];
    const value = us / unit;
    return `${value >= 100 || unit === 1 ? value.toFixed(0) : value.toFixed(1)} ${name}`;
  }

  function amount(bytes, per = '') {
    const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    for (; bytes >= 1024 && unit < names.length - 1; unit++) bytes /= 1024;
    return `${bytes.toFixed(unit === 0 ? 0 : 1)} ${names[unit]}${per}`;
  }

  const percent = share => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
  const nameOf = rank => `rank ${rank} on ${ranks[rank].host}`;

  // Returns a new element with text or children.
  function make(tag, content, kind) {
    const element = document.createElement(tag);
    if (kind) element.className = kind;
    for (const each of [].concat(content)) element.append(each);
    return element;
  }

  function fill(table, heads, rows) {
    const head = make('thead', make('tr', heads.map(([text, kind]) => make('th', text, kind))));
    const body = make('tbody', rows.map(row => make('tr', row.cells.map((cell, i) => make('td', cell, heads[i][1])),
      row.isLate ? 'late' : '')));
    table.replaceChildren(head, body);
  }

  // --- data ---

  // Times of cells are bytes: three bits of mantissa below a leading one, then the exponent, of the microseconds + 1.
  const decoded = Array.from({length: 256}, (_, code) => code === 0 ? 0 : (8.5 + code % 8) * 2 ** (code >> 3) / 8 - 1);

  function bytesOf(text) {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return bytes;
  }

  const layers = {late: bytesOf(time.late), waited: bytesOf(time.waited)};
  const cell = (layer, rank, column) => layers[layer][rank * time.count + column];
  const spans = time.ended_us.map((end, i) => Math.max(0, end - (i > 0 ? time.ended_us[i - 1] : 0)));

  function plural(unit) {
    return unit + (unit.endsWith('ch') ? 'es' : 's');
  }

  function stepsOf(column) {
    const first = column * time.width, last = first + time.width - 1;
    return first === last ? `${time.unit} ${first}` : `${plural(time.unit)} ${first}-${last}`;
  }

  // Returns the three parts of a column, for a rank or (-1) on average, in microseconds per step.
  function partsOf(column, rank) {
    const waiting = rank < 0 ? time.waited_us[column] : decoded[cell('waited', rank, column)];
    const moving = Math.min(time.moving_us[column], spans[column]);
    const rest = spans[column] - moving;
    return {column, waiting: Math.min(waiting, rest) / time.width, moving: moving / time.width,
      computing: Math.max(0, rest - waiting) / time.width};
  }

  // --- the tip ---

  function showTip(event, text) {
    const tip = at('tip');
    tip.textContent = text;
    tip.hidden = false;
    const left = Math.min(event.pageX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${event.pageY + 14}px`;
  }

  const hideTip = () => { at('tip').hidden = true; };

  // --- the heat map ---

  const margin = {left: 110, right: 20, top: 8, bottom: 40};
  const width = Math.max(400, at('heat').parentElement.clientWidth);
  const inner = width - margin.left - margin.right;
  const all = time.count * time.width;
  const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Colours of the 256 codes: logarithmic, from 100 us or less to the largest value.
  function coloursOf(layer) {
    const most = layers[layer].reduce((a, b) => Math.max(a, b), 8);
    const least = Math.min(53, most - 8);
    const scale = d3.scaleLinear().domain([0, 1]).range([style('--none'), style('--heat')]).interpolate(d3.interpolateRgb);
    const share = code => Math.max(0, Math.min(1, (code - least) / (most - least)));
    const table = new Uint32Array(256);
    for (let code = 0; code < 256; code++) {
      const {r, g, b} = d3.rgb(scale(share(code)));
      table[code] = (255 << 24 | b << 16 | g << 8 | r) >>> 0;
    }
    return {table, least, most, scale};
  }

  // Draws the cells between two values of the axes. A pixel of several cells shows the largest one, so that one late
  // rank among a thousand stays visible.
  function paint(canvas, layer, x, y, table) {
    const w = canvas.width, h = canvas.height, cells = layers[layer], count = time.count;
    const context = canvas.getContext('2d'), image = context.createImageData(w, h);
    const out = new Uint32Array(image.data.buffer);
    const edges = (n, scale, most) => Array.from({length: n + 1}, (_, i) => Math.max(0, Math.min(most, scale(i))));
    const columns = edges(w, i => x.invert(i) / time.width, count), rows = edges(h, i => y.invert(i), size);
    const endOf = (edge, i) => edge[i + 1] - edge[i] > 1 ? Math.ceil(edge[i + 1]) : Math.floor(edge[i]) + 1;
    const empty = table[0];
    for (let py = 0; py < h; py++) {
      const r0 = Math.floor(rows[py]), r1 = endOf(rows, py);
      for (let px = 0; px < w; px++) {
        const c0 = Math.floor(columns[px]), c1 = endOf(columns, px);
        let most = -1;
        for (let r = r0; r < r1 && r < size; r++) {
          for (let c = c0; c < c1 && c < count; c++) {
            const value = cells[r * count + c];
            most = value > most ? value : most;
          }
        }
        out[py * w + px] = most < 0 ? empty : table[most];
      }
    }
    context.putImageData(image, 0, 0);
  }

  // Returns the runs of ranks that are on one node: [host, first, end].
  function nodesOf() {
    const runs = [];
    for (let rank = 0; rank < size; rank++) {
      const last = runs[runs.length - 1];
      if (last && last[0] === ranks[rank].host) last[2] = rank + 1;
      else runs.push([ranks[rank].host, rank, rank + 1]);
    }
    return runs;
  }

  // The time that a layer's largest code stands for: as the table has it, if the table's longest lateness has that code.
  // In its cell nobody waited less, so it is the better value of the two.
  function mostOf(code) {
    const longest = ranks.reduce((most, rank) => Math.max(most, rank.late_most_us), 0);
    return Math.abs(longest / decoded[code] - 1) < 1 / 16 ? longest : decoded[code];
  }

  function drawLegend(box, colours) {
    const wide = Math.min(360, inner - 20), legend = box.append('svg').attr('width', width).attr('height', 48);
    const x = d3.scaleLinear().domain([colours.least, colours.most]).range([margin.left, margin.left + wide]);
    for (let i = 0; i < wide; i += 2) {
      legend.append('rect').attr('x', margin.left + i).attr('y', 4).attr('width', 2).attr('height', 12)
        .attr('fill', colours.scale(i / wide));
    }
    const codes = Array.from({length: 5}, (_, i) => Math.round(colours.least + i * (colours.most - colours.least) / 4));
    legend.selectAll('text').data(codes).join('text').attr('x', x).attr('y', 32).attr('text-anchor', 'middle')
      .text((code, i) => (i === 0 ? '\u2264 ' : '') + span(i === 4 ? mostOf(code) : decoded[code]));
  }

  const heightOf = () => Math.round(Math.max(96, Math.min(560, size * 20)));
  let shown = null; // scale of the steps, as zoomed
  let redrawParts = () => {};

  function drawMap() {
    const box = d3.select('#map'), layer = at('layer').value, colours = coloursOf(layer), height = heightOf();
    box.selectAll('*').remove();
    const canvas = box.append('canvas').attr('width', inner).attr('height', height)
      .style('left', `${margin.left}px`).style('top', `${margin.top}px`).node();
    const svg = box.append('svg').attr('width', width).attr('height', height + margin.top + margin.bottom)
      .style('position', 'relative');
    const x0 = d3.scaleLinear().domain([0, all]).range([0, inner]), y0 = d3.scaleLinear().domain([0, size]).range([0, height]);
    const below = svg.append('g').attr('transform', `translate(${margin.left},${margin.top + height})`);
    const beside = svg.append('g').attr('transform', `translate(${margin.left},${margin.top})`);
    const inside = svg.append('svg').attr('x', 0).attr('y', margin.top).attr('width', width).attr('height', height);
    let x = x0, y = y0;

    function drawRanks() {
      const row = y(1) - y(0), from = Math.max(0, Math.floor(y.invert(0))), to = Math.min(size, Math.ceil(y.invert(height)));
      const every = 2 ** Math.max(0, Math.ceil(Math.log2(14 / row)));
      const ticks = d3.range(Math.ceil(from / every) * every, to, every)
        .filter(rank => late < 0 || Math.abs(y(rank) - y(late)) >= 14).concat(late >= from && late < to ? [late] : []);
      beside.selectAll('text').data(ticks).join('text').attr('x', -6).attr('y', rank => y(rank + 0.5)).attr('dy', '0.35em')
        .attr('text-anchor', 'end').text(rank => rank).style('fill', rank => rank === late ? 'var(--waiting)' : null)
        .style('font-weight', rank => rank === late ? 'bold' : null);
      const nodes = nodesOf().filter(([, first, end]) => y(end) > 0 && y(first) < height && y(end) - y(first) >= 14);
      inside.selectAll('line').data(nodes).join('line').attr('class', 'node').attr('x1', 0).attr('x2', width)
        .attr('y1', node => y(node[1])).attr('y2', node => y(node[1]));
      inside.selectAll('text').data(nodes).join('text').attr('x', 2)
        .attr('y', node => Math.max(12, y(node[1]) + 12)).text(node => node[0].slice(0, 11));
    }

    function draw() {
      paint(canvas, layer, x, y, colours.table);
      below.call(d3.axisBottom(x).ticks(10).tickFormat(d3.format('~s')));
      drawRanks();
      shown = x;
      redrawParts(x);
    }

    below.append('text').attr('x', inner / 2).attr('y', 34).attr('text-anchor', 'middle').text(time.unit);
    const zoom = d3.zoom().scaleExtent([1, Math.max(1, Math.min(500, time.count))]).extent([[0, 0], [inner, height]])
      .translateExtent([[0, 0], [inner, height]]).on('zoom', event => {
        const {transform} = d3.event || event;
        x = transform.rescaleX(x0);
        y = size > 40 ? transform.rescaleY(y0) : y0;
        draw();
      });
    const field = svg.append('rect').attr('x', margin.left).attr('y', margin.top).attr('width', inner).attr('height', height)
      .attr('fill', 'transparent').call(zoom).on('dblclick.zoom', null);
    field.node().addEventListener('dblclick', () => field.call(zoom.transform, d3.zoomIdentity));
    field.node().addEventListener('mouseleave', hideTip);
    field.node().addEventListener('mousemove', event => {
      const place = canvas.getBoundingClientRect();
      const column = Math.floor(x.invert(event.clientX - place.left) / time.width), rank = Math.floor(y.invert(event.clientY - place.top));
      if (column < 0 || column >= time.count || rank < 0 || rank >= size) return hideTip();
      const parts = partsOf(column, rank);
      showTip(event, `${nameOf(rank)}, ${stepsOf(column)}\nlate by ${span(decoded[cell('late', rank, column)])}\n` +
        `waited ${span(decoded[cell('waited', rank, column)])}\ncomputed ${span(parts.computing * time.width)}`);
    });
    draw();
    drawLegend(box, colours);
  }

  // --- the parts of a step ---

  const kinds = [['computing', 'computing: no batch is under way'], ['waiting', 'waiting for later ranks'],
    ['moving', 'moving data']];

  function drawParts() {
    const rank = Number(at('rank').value), height = 180, top = 28, box = d3.select('#parts');
    box.selectAll('*').remove();
    const rows = d3.range(time.count).map(column => partsOf(column, rank));
    const sums = rows.map(row => row.computing + row.waiting + row.moving);
    // The first column has the start of the program, and a few steps may be far longer than most: their
    // bars are shortened to the height of the axis, and marked above it.
    const most = d3.quantile(sums.slice(sums.length > 2 ? 1 : 0).sort(d3.ascending), 0.95) || 1;
    const y = d3.scaleLinear().domain([0, most * 1.3 / 1000]).nice().range([height, 0]);
    const highest = y.domain()[1] * 1000;
    const cut = d3.range(time.count).filter(column => sums[column] > highest).sort((a, b) => sums[b] - sums[a]);
    at('cut').hidden = cut.length === 0;
    const stack = d3.stack().keys(kinds.map(kind => kind[0]))(rows);
    const svg = box.append('svg').attr('width', width).attr('height', height + top + margin.bottom);
    svg.append('g').attr('transform', `translate(${margin.left},${top})`).call(d3.axisLeft(y).ticks(5));
    svg.append('text').attr('transform', `translate(${margin.left - 60},${top + height / 2}) rotate(-90)`)
      .attr('text-anchor', 'middle').text(`ms per ${time.unit}`);
    const above = svg.append('g').attr('class', 'cuts').attr('transform', `translate(${margin.left},${top})`);
    const below = svg.append('g').attr('transform', `translate(${margin.left},${top + height})`);
    const inside = svg.append('svg').attr('x', margin.left).attr('y', top).attr('width', inner).attr('height', height);
    below.append('text').attr('x', inner / 2).attr('y', 34).attr('text-anchor', 'middle').text(time.unit);
    const paths = inside.selectAll('path').data(stack).join('path').attr('class', layer => layer.key);

    // Marks each shortened bar in view, and writes the length of a step beside the longest ones, as far as there is room.
    function drawCuts(x) {
      const middle = column => x((column + 0.5) * time.width), labelled = [];
      const marked = cut.filter(column => middle(column) >= 0 && middle(column) <= inner);
      for (const column of marked) {
        if (labelled.every(other => Math.abs(middle(other) - middle(column)) >= 64)) labelled.push(column);
      }
      above.selectAll('path').data(marked).join('path')
        .attr('d', column => `M${middle(column)},-8l4,6h-8z`);
      above.selectAll('text').data(labelled).join('text').attr('x', middle).attr('y', -12).attr('text-anchor', 'middle')
        .text(column => span(sums[column]));
    }

    function draw(x) {
      const area = d3.area().x(point => x(point.at)).y0(point => y(point.low)).y1(point => y(point.high));
      paths.attr('d', layer => area(layer.flatMap((ends, column) => {
        const [low, high] = ends.map(end => end * Math.min(1, highest / sums[column]) / 1000);
        return [{at: column * time.width, low, high}, {at: (column + 1) * time.width, low, high}];
      })));
      below.call(d3.axisBottom(x).ticks(10).tickFormat(d3.format('~s')));
      drawCuts(x);
    }

    redrawParts = draw;
    draw(shown || d3.scaleLinear().domain([0, all]).range([0, inner]));
  }

  function prepareParts() {
    at('keys').replaceChildren(...kinds.flatMap(([name, text]) => {
      const key = make('span', '', 'key');
      key.style.background = `var(--${name})`;
      return [key, text];
    }));
    const choices = [['-1', 'all ranks, on average']].concat(ranks.map((_, rank) => [String(rank), nameOf(rank)]));
    at('rank').replaceChildren(...choices.map(([value, text]) => {
      const option = make('option', text);
      option.value = value;
      return option;
    }));
    at('rank').addEventListener('change', drawParts);
  }

  // --- tables ---

  function median(values) {
    const sorted = values.slice().sort((a, b) => a - b);
    return sorted[sorted.length >> 1];
  }

  // A strip with a dot for each rank.
  function strip(times, most) {
    const wide = 280, svg = d3.create('svg').attr('width', wide).attr('height', 16);
    const x = d3.scaleLinear().domain([0, most || 1]).range([6, wide - 6]);
    const order = d3.range(size).sort((a, b) => (a === late) - (b === late));
    svg.selectAll('circle').data(order).join('circle').attr('class', rank => rank === late ? 'dot late' : 'dot')
      .attr('cx', rank => x(times[rank])).attr('cy', 8).attr('r', 4);
    return svg.node();
  }

  function fillSections() {
    const sections = Object.entries(report.sections_us || {});
    if (sections.length === 0) return;
    at('sections').hidden = false;
    const most = Math.max(...sections.map(([, times]) => times.reduce((a, b) => Math.max(a, b), 0)));
    const heads = [['section', 'text long'], ['median'], ['longest'], ['by', 'text'], ['relative score'],
      [hasCharts ? 'each rank, from 0 to ' + span(most) : '', 'text']];
    fill(at('sections').querySelector('table'), heads, sections.map(([name, times]) => {
      const longest = times.indexOf(times.reduce((a, b) => Math.max(a, b), 0));
      const shortest = times.reduce((a, b) => Math.min(a, b), Infinity);
      return {cells: [name, span(median(times)), span(times[longest]), nameOf(longest),
        times[longest] > 0 ? (shortest / times[longest]).toFixed(2) : '1.00', hasCharts ? strip(times, most) : '']};
    }));
  }

  function fillRanks(most) {
    const order = ranks.map((_, rank) => rank).sort((a, b) => ranks[b].late_us - ranks[a].late_us || a - b);
    const heads = [['rank'], ['node', 'text'], ['times last'], ['of all'], ['late, mean'], ['late, most'], ['waited'],
      ['of time'], ['relative score'], ['individual score']];
    const score = (rank, i) => data.scores.length > 0 ? (data.scores[rank][i] / 10000).toFixed(2) : '-';
    fill(at('ranks').querySelector('table'), heads, order.slice(0, most).map(i => {
      const rank = ranks[i], isLast = rank.times_last > 0;
      return {isLate: i === late, cells: [String(i), rank.host, String(rank.times_last),
        percent(rank.times_last / Math.max(1, report.batches_compared)), isLast ? span(rank.late_mean_us) : '-',
        isLast ? span(rank.late_most_us) : '-', span(rank.waited_us), percent(rank.waited_us / Math.max(1, report.elapsed_us)),
        score(i, 0), score(i, 1)]};
    }));
    at('all').hidden = most >= size;
    at('scores').hidden = data.scores.length === 0;
  }

  // The traffic of one link for a batch of so many bytes of input, as nccl-tests define bus bandwidth.
  function traffic(kind, bytes) {
    const share = (size - 1) / size;
    const factors = {allreduce: 2 * share, adasum: 2 * share, allgather: size - 1, reducescatter: share, alltoall: share};
    return bytes * (factors[kind] || 0);
  }

  function fillBuckets() {
    const rows = data.buckets.map(bucket => {
      const bytes = bucket.bytes / Math.max(1, bucket.batches), on = traffic(bucket.kind, bytes);
      return {bucket, bytes, mean: bucket.moving_us / Math.max(1, bucket.batches), on,
        bandwidth: bucket.moving_us > 0 ? on * bucket.batches / bucket.moving_us * 1e6 : 0,
        best: bucket.least_us > 0 ? on / bucket.least_us * 1e6 : 0};
    }).sort((a, b) => b.bucket.moving_us - a.bucket.moving_us);
    if (rows.length === 0) return;
    at('buckets').hidden = false;
    const best = Math.max(...rows.map(row => row.best));
    const heads = [['tensor, or first tensor of a bucket', 'text long'], ['collective', 'text'], ['batches'], ['data'], ['time'],
      ['late'], ['bus bandwidth'], [best > 0 ? `of the best seen, ${amount(best, '/s')}` : '']];
    fill(at('buckets').querySelector('table'), heads, rows.map(({bucket, bytes, mean, bandwidth}) => {
      const bar = make('span', '', 'bar');
      bar.style.width = `${best > 0 ? Math.min(100, 100 * bandwidth / best) : 0}%`;
      return {cells: [bucket.name + (bucket.tensors > 1 ? ` and ${bucket.tensors - 1} more` : ''), bucket.kind,
        String(bucket.batches), amount(bytes), span(mean), span(bucket.late_us / Math.max(1, bucket.batches)),
        bandwidth > 0 ? amount(bandwidth, '/s') : '-',
        bandwidth > 0 ? [percent(bandwidth / best), make('span', bar, 'track')] : '-']};
    }));
  }

  // --- where the ranks run ---

  // Returns the ranks of each node.
  function membersOf() {
    const nodes = new Map();
    ranks.forEach(({host}, rank) => nodes.set(host, (nodes.get(host) || []).concat(rank)));
    return nodes;
  }

  // Returns the numbers in a list such as "0-3,8".
  function cpusOf(list) {
    return list.split(',').filter(part => /^[0-9]/.test(part)).flatMap(part => {
      const [first, last] = part.split('-').map(text => parseInt(text, 10));
      return Array.from({length: (last === undefined ? first : last) - first + 1}, (_, i) => first + i);
    });
  }

  // A strip with a box for each CPU of the node, filled where the rank may run.
  function cpuStrip(own, count, isLate) {
    const wide = Math.max(2, Math.min(10, Math.floor(440 / count))), svg = d3.create('svg')
      .attr('width', wide * count + 1).attr('height', 14);
    const chosen = new Set(own);
    svg.selectAll('rect').data(d3.range(count)).join('rect').attr('x', cpu => cpu * wide).attr('y', 1)
      .attr('width', Math.max(1, wide - 1)).attr('height', 12)
      .attr('class', cpu => !chosen.has(cpu) ? 'free' : isLate ? 'waiting' : 'computing');
    return svg.node();
  }

  // Returns the pairs of neighbouring ranks of a node that may run on the same CPUs.
  function sharedBy(members) {
    const found = [], users = new Map();
    for (const rank of members) {
      for (const cpu of cpusOf(data.bindings[rank].cpus)) {
        if (users.has(cpu)) found.push([users.get(cpu), rank]);
        users.set(cpu, rank);
      }
    }
    return found;
  }

  function fillBindings(most) {
    if (data.bindings.length === 0) return;
    at('bindings').hidden = false;
    const nodes = [...membersOf()].sort((a, b) => b[1].includes(late) - a[1].includes(late));
    const heads = [['node', 'text'], ['rank'], ['CPUs', 'text long'], ['', 'text'], ['GPU'], ['network card', 'text']];
    fill(at('bindings').querySelector('table'), heads, nodes.slice(0, most).flatMap(([host, members]) => {
      const own = members.map(rank => cpusOf(data.bindings[rank].cpus));
      const count = 1 + own.flat().reduce((a, b) => Math.max(a, b), 0);
      return members.map((rank, i) => ({isLate: rank === late, cells: [i === 0 ? host : '', String(rank),
        data.bindings[rank].cpus || 'not known', hasCharts && own[i].length > 0 ? cpuStrip(own[i], count, rank === late) : '',
        data.bindings[rank].gpu || '-', data.bindings[rank].nic || '-']}));
    }));
    const pairs = nodes.flatMap(([host, members]) => sharedBy(members).map(pair => [host, pair]));
    at('shared').textContent = pairs.length === 0 ? 'No two ranks of a node share a CPU.'
      : `Ranks share CPUs, for example ${pairs[0][1].join(' and ')} on ${pairs[0][0]}: they slow each other down if they compute at the same time.`;
    at('nodes').hidden = most >= nodes.length;
  }

  // --- the page ---

  const hosts = new Set(ranks.map(rank => rank.host)).size;
  at('facts').textContent = `${size} rank${size === 1 ? '' : 's'} on ${hosts} node${hosts === 1 ? '' : 's'}, ` +
    `${span(report.elapsed_us)}, ${report.batches_compared} batches compared`;
  at('verdict').textContent = report.verdict;
  at('verdict').classList.toggle('even', late < 0);
  const notes = [];
  if (!report.complete) notes.push('Incomplete: the job was still running when this was written, or it failed.');
  if (typeof d3 === 'undefined') notes.push('This hvd was built without D3, so the page has no charts: see the page observe.md of hvd.');
  at('notes').textContent = notes.join(' ');
  for (const each of document.querySelectorAll('.unit')) {
    each.textContent = time.width > 1 ? `${time.width} ${plural(time.unit)}` : `a ${time.unit}`;
  }
  if (hasCharts) {
    at('heat').hidden = at('split').hidden = false;
    prepareParts();
    drawParts();
    drawMap();
    at('layer').addEventListener('change', drawMap);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawMap);
  }
  fillSections();
  fillRanks(20);
  at('all').addEventListener('click', () => fillRanks(size));
  fillBuckets();
  fillBindings(4);
  at('nodes').addEventListener('click', () => fillBindings(Infinity));
  document.documentElement.dataset.drawnMs = Math.round(performance.now() - began);
})();
