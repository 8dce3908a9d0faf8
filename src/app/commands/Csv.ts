/** Reads and writes CSV (RFC 4180), for commands. */

/** A cell with the line on which it begins. */
export interface Row {
  readonly line: number
  readonly cells: ReadonlyArray<string>
}

/** The rows of a text, without empty lines. If a quote is not closed, the number of its line. */
export const parse = (text: string): ReadonlyArray<Row> | number => {
  const rows: Array<Row> = []
  let cells: Array<string> = []
  let [line, begin, at] = [1, 1, text.startsWith("\uFEFF") ? 1 : 0]
  const endRow = (): void => {
    if (cells.length > 1 || cells[0]?.trim() !== "") rows.push({ line: begin, cells })
    cells = []
    begin = line
  }
  for (;;) {
    let cell = ""
    if (text[at] === '"') {
      const opened = line
      for (at++; ; at++) {
        if (at >= text.length) return opened
        if (text[at] === '"' && text[++at] !== '"') break
        if (text[at] === "\n") line++
        cell += text[at]!
      }
    }
    while (at < text.length && !",\r\n".includes(text[at]!)) cell += text[at++]!
    cells.push(cell.trim())
    if (text[at] === ",") {
      at++
      continue
    }
    if (at >= text.length) {
      endRow()
      return rows
    }
    at += text.startsWith("\r\n", at) ? 2 : 1
    line++
    endRow()
  }
}

/** A cell that no spreadsheet reads as a formula. */
export const cell = (text: string): string => {
  const plain = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}

export const line = (cells: ReadonlyArray<string>): string => `${cells.map(cell).join(",")}\n`
