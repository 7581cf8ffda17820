module fields

go 1.24
