/** Reads and writes CSV (RFC 4180) for commands. */
import { cell } from "../../kernel/CsvCell.ts"

/** The cells of a row, and the number of the row's first line. */
export interface Row {
  readonly line: number
  readonly cells: ReadonlyArray<string>
}

export interface Malformed {
  readonly line: number
  /** Counted from 1. */
  readonly column: number
  readonly fault: string
}

export const isMalformed = (parsed: ReadonlyArray<Row> | Malformed): parsed is Malformed => "fault" in parsed

/** Returns the first comma, semicolon or tab in the header, or a comma. Spreadsheets write semicolons where the decimal separator is a comma. */
const separatorOf = (text: string): string => /[,;\t]/.exec(text.trimStart().split(/[\r\n]/, 1)[0]!)?.[0] ?? ","

/** Parses the rows of a CSV file. Skips empty lines. */
export const parse = (text: string): ReadonlyArray<Row> | Malformed => {
  const separator = separatorOf(text)
  const ends = `${separator}\r\n`
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
    const isQuoted = text[at] === '"'
    if (isQuoted) {
      const opened = { line, column: cells.length + 1, fault: "the closing quote is missing" }
      for (at++; ; at++) {
        if (at >= text.length) return opened
        if (text[at] === '"' && text[++at] !== '"') break
        if (text[at] === "\n") line++
        cell += text[at]!
      }
    }
    let plain = ""
    while (at < text.length && !ends.includes(text[at]!)) plain += text[at++]!
    if (isQuoted && plain.trim() !== "")
      return { line, column: cells.length + 1, fault: 'the closing quote is followed by more text (write " as "")' }
    cells.push((isQuoted ? cell : plain).trim())
    if (text[at] === separator) {
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

export const line = (cells: ReadonlyArray<string>): string => `${cells.map(cell).join(",")}\n`
