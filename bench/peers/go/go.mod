module gobench

go 1.23
